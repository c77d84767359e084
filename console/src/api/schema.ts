// Written by scripts/schema.mjs from the service's /openapi.json. Do not change it by hand.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A reservation that has a host, in whole or in part. */
        AllocatedReservation: {
            /** @description End: UTC with microseconds. */
            end_date: string;
            /** @description Identifier of the reservation. */
            id: string;
            /** @description Identifier of the lease. */
            lease_id: string;
            /** @description Start: UTC with microseconds. */
            start_date: string;
        };
        /** @description Reservations of a host. */
        Allocation: {
            /** @description Reservations, by start. */
            reservations: components["schemas"]["AllocatedReservation"][];
            /** @description Identifier of the host. */
            resource_id: string;
        };
        /** @description Reservations of a host. */
        AllocationBody: {
            /** @description Reservations of a host. */
            allocation: components["schemas"]["Allocation"];
        };
        /** @description Reservations of each host, by identifier of the host. */
        AllocationsBody: {
            /** @description Reservations of each host, by identifier of the host. */
            allocations: components["schemas"]["Allocation"][];
            /** @description Link to the next page, if the request has a limit; absent on the last page. */
            allocations_links?: components["schemas"]["Link"][];
        };
        /** @description Entries of the audit log. */
        AuditBody: {
            /** @description Changes, newest first. */
            audit: components["schemas"]["AuditEntry"][];
            /** @description Link to the next page; absent on the last page. */
            audit_links?: components["schemas"]["Link"][];
        };
        /** @description A change, as recorded in the audit log. */
        AuditEntry: {
            /** @description Kind of change: `lease.create`, `host.update`. */
            action: string;
            /**
             * Format: int64
             * @description Number of the entry. Numbers increase over time.
             */
            number: number;
            /** @description Identifier of the changed object. */
            object_id: string;
            /** @description Project of the request. */
            project_id: string;
            /** @description Identifier of the request, from the response header `X-OpenStack-Request-ID`. */
            request_id: string;
            /**
             * Format: date-time
             * @description Time of the change: UTC, RFC 3339.
             */
            timestamp: string;
            /** @description User who made the change. */
            user_id: string;
        };
        /** @description Error of authentication. */
        AuthError: {
            /**
             * Format: int32
             * @description HTTP status.
             */
            code: number;
            /** @description Description of the error. */
            message: string;
            /** @description Reason phrase of the HTTP status. */
            title: string;
        };
        /** @description Response to a request without valid credentials, in the format of Keystone's middleware. */
        AuthErrorBody: {
            /** @description The error. */
            error: components["schemas"]["AuthError"];
            /** @description Login methods for the console, in responses about sessions: `token`, `password`. */
            login?: string[];
        };
        /** @description Free capacity over time. */
        Availability: {
            /**
             * @description Earliest windows in which the requested amount can be reserved for the requested duration. They don't
             *     overlap. Absent unless the request has a duration.
             */
            best?: components["schemas"]["Span"][] | null;
            /**
             * Format: date-time
             * @description End of the window: UTC, RFC 3339.
             */
            end: string;
            /** @description Type of the resource: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`. */
            resource_type: string;
            /**
             * Format: date-time
             * @description Start of the window: UTC, RFC 3339.
             */
            start: string;
            /** @description Free capacity, in chronological order and without gaps. */
            steps: components["schemas"]["FreeStep"][];
            /**
             * Format: int64
             * @description Total capacity, including reserved capacity: number of hosts, of instances of the requested size, or
             *     of addresses.
             */
            total: number;
        };
        /** @description Free capacity over time. */
        AvailabilityBody: {
            /** @description Free capacity over time. */
            availability: components["schemas"]["Availability"];
        };
        /**
         * @description Question: which moves balance a group? Equivalent to `allot hbal`.
         *
         *     Exactly one of `cluster`, `fleet`, `text` and `rapi` selects the cluster.
         */
        BalanceQuestion: {
            /** @description Name of a cluster, as configured by the operator. */
            cluster?: string | null;
            /** @description Whether disks can be copied. Default: true. */
            disk_moves?: boolean | null;
            /** @description Whether to move only instances on offline nodes. Default: false. */
            evacuate?: boolean | null;
            /** @description True selects the service's own fleet: its hosts as nodes, and their guests as instances. */
            fleet?: boolean | null;
            /** @description Name of the group. Can be omitted if only one group has nodes. */
            group?: string | null;
            /** @description Whether to ignore limits that are exceeded already. Default: false. */
            ignore_soft_errors?: boolean | null;
            /** @description Whether instances can be migrated. Default: true. */
            instance_moves?: boolean | null;
            /**
             * Format: double
             * @description Maximum number of virtual CPUs per physical CPU. Default: the policy's limit.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Minimum share of each node's disk that stays free, from 0 to 1.
             */
            min_disk?: number | null;
            /**
             * Format: int32
             * @description Maximum number of moves.
             */
            moves?: number | null;
            /**
             * @description Kind of free memory that decides which nodes fail N+1 before any changes: `recorded` or
             *     `reported`.
             */
            n1_initial?: string | null;
            /** @description Names of nodes to treat as offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description Description of a cluster in Ganeti's text format, as written by `hscan` and `hbal -S`. */
            text?: string | null;
        };
        /** @description Cost of leases and preemptible instances. */
        BillingBody: {
            /** @description Lines of the bill. */
            billing: components["schemas"]["BillingLine"][];
            /** @description Currency of all amounts, as configured by the operator; empty if not configured. */
            currency: string;
            /**
             * Format: date-time
             * @description End of the bill, at most the current time: UTC, RFC 3339.
             */
            end: string;
            /**
             * Format: date-time
             * @description Start of the bill: UTC, RFC 3339.
             */
            start: string;
            /** @description Sum of the amounts: a decimal number. */
            total: string;
        };
        /** @description A line of a bill. */
        BillingLine: {
            /** @description Amount of the line: a decimal number, rounded to six decimals once. */
            amount: string;
            /**
             * Format: date-time
             * @description End of the period: UTC, RFC 3339.
             */
            end: string;
            /**
             * @description Billed item: lease, host, room, room-core, room-memory, address, instance, preemptible-core or
             *     preemptible-memory.
             */
            item: string;
            /** @description Identifier of the lease; absent for preemptible instances, which are outside of leases. */
            lease_id?: string | null;
            /** @description Name of the lease; absent if the lease no longer exists. */
            lease_name?: string | null;
            /** @description Identifier of the project. */
            project_id: string;
            /** @description Quantity in `unit`: a decimal number, rounded to six decimals. */
            quantity: string;
            /**
             * Format: date-time
             * @description Start of the period: UTC, RFC 3339.
             */
            start: string;
            /** @description Unit of the quantity: `host-hour`. */
            unit: string;
            /** @description Price of one unit: a decimal number. */
            unit_price: string;
            /** @description Identifier of the user. */
            user_id: string;
        };
        /** @description Page of the calendar: hosts, and their reservations within a time window. */
        Calendar: {
            /**
             * Format: int64
             * @description Length of each span in `buckets`, in minutes; null if the calendar shows bars.
             */
            bucket_minutes?: number | null;
            /**
             * Format: date-time
             * @description End of the window.
             */
            end: string;
            /** @description Hosts, sorted by group if they are grouped, then by identifier. */
            hosts: components["schemas"]["CalendarHost"][];
            /** @description Leases that bars refer to by position. Only leases that the caller can see. */
            leases: components["schemas"]["CalendarLease"][];
            /** @description Value of `marker` for the next page; null on the last page. */
            next?: string | null;
            /**
             * Format: date-time
             * @description Current time of the service.
             */
            now: string;
            /** @description Revision of the service's state. It differs after every change. */
            revision: string;
            /**
             * Format: date-time
             * @description Start of the window: UTC, RFC 3339, like all times in the calendar.
             */
            start: string;
        };
        /** @description Period during which a host is used. */
        CalendarBar: {
            /**
             * Format: date-time
             * @description End; null if there is none. For a preemptible instance, the time of its preemption notice.
             */
            end?: string | null;
            /**
             * Format: int64
             * @description Number of instances that the reserved capacity is for; null for whole hosts, or if the caller can't
             *     see it.
             */
            instances?: number | null;
            /**
             * @description Kind of use: `lease`, `offer`, `maintenance`, `instance` (outside of leases), `preemptible`, or
             *     `other` if the caller can't see the details.
             */
            kind: string;
            /** @description Position of the lease in `leases`; null if there is no lease, or the caller can't see it. */
            lease?: number | null;
            /**
             * Format: date-time
             * @description Start. Can be before the start of the calendar.
             */
            start: string;
            /** @description Whether the whole host is used. */
            whole: boolean;
        };
        /** @description Calendar of host reservations. */
        CalendarBody: {
            /** @description Calendar of host reservations. */
            calendar: components["schemas"]["Calendar"];
        };
        /** @description Event in the stream of calendar changes. */
        CalendarChange: {
            /** @description The revision as JSON: `{"revision": "..."}`. */
            data: string;
            /** @description Always `revision`. */
            event: string;
            /** @description Revision of the calendar. Send it as `Last-Event-ID` to continue the stream. */
            id: string;
        };
        /** @description A host in the calendar. */
        CalendarHost: {
            /** @description Uses of the host, by start; absent if the request has `bucket`. */
            bars?: components["schemas"]["CalendarBar"][] | null;
            /**
             * @description Average share of the host that is reserved in each span, in thousandths, rounded up. The first span
             *     starts at `start`, and the last one ends at `end`. Absent unless the request has `bucket`.
             */
            buckets?: number[] | null;
            /**
             * @description Value of the property that hosts are grouped by; null if the host has no value, or hosts aren't
             *     grouped.
             */
            group?: string | null;
            /** @description Identifier of the host. */
            id: string;
            /** @description Name of the host; null if the caller can't see it. */
            name?: string | null;
            /** @description Name of the host's free pool; null if the caller can't see it. */
            pool?: string | null;
            /** @description Power state: `on`, also while the host boots, or `off`; null if the caller can't see it. */
            power?: string | null;
            /** @description Current status: `open`, `closed`, `failed` or `maintenance`. */
            status: string;
        };
        /** @description A lease in the calendar. */
        CalendarLease: {
            /**
             * Format: date-time
             * @description End of the lease.
             */
            end_date: string;
            /** @description Identifier of the lease. */
            id: string;
            /** @description Whether the lease belongs to the caller's project. */
            mine: boolean;
            /** @description Name of the lease. */
            name: string;
            /** @description Project that owns the lease. */
            project_id: string;
            /**
             * Format: date-time
             * @description Start of the lease.
             */
            start_date: string;
            /** @description Status of the lease. */
            status: string;
        };
        /** @description Refused requests, by kind. */
        CapacityBody: {
            /** @description Kinds of requests, by number of refusals, largest first. */
            capacity: components["schemas"]["RefusedRequests"][];
            /**
             * Format: date-time
             * @description End of the report, at most the current time: UTC, RFC 3339.
             */
            end: string;
            /**
             * Format: date-time
             * @description Start of the report: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description Names of clusters. */
        ClustersBody: {
            /** @description Names of the clusters, sorted. */
            clusters: string[];
        };
        /** @description Cost of a lease. */
        Cost: {
            /** @description Amount: a decimal number, rounded to six decimals. */
            amount: string;
            /** @description Currency, as configured by the operator. */
            currency: string;
        };
        /** @description Preemption of an instance. */
        Departure: {
            /**
             * Format: date-time
             * @description Time of the preemption notice, which asks the instance to shut down: UTC to the second.
             */
            asked_at: string;
            /**
             * Format: date-time
             * @description Time at which the instance is deleted, if it is still on the host: UTC to the second.
             */
            gone_by: string;
            /** @description Whether the instance will be moved to another host before that, so that it doesn't have to leave. */
            moves: boolean;
        };
        /**
         * @description Question: can nodes be emptied? Equivalent to `allot drain`.
         *
         *     Exactly one of `cluster`, `fleet`, `text` and `rapi` selects the cluster.
         */
        DrainQuestion: {
            /** @description Name of a cluster, as configured by the operator. */
            cluster?: string | null;
            /** @description Whether disks can be copied. Default: true. */
            disk_moves?: boolean | null;
            /** @description True selects the service's own fleet: its hosts as nodes, and their guests as instances. */
            fleet?: boolean | null;
            /**
             * @description Whether to accept moves that violate policies, exclusion tags or N+1, if they are violated
             *     already. Default: false.
             */
            ignore_soft_errors?: boolean | null;
            /**
             * Format: double
             * @description Maximum number of virtual CPUs per physical CPU. Default: the policy's limit.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Minimum share of each node's disk that stays free, from 0 to 1.
             */
            min_disk?: number | null;
            /**
             * @description Kind of free memory that decides which nodes fail N+1 before any changes: `recorded` or
             *     `reported`.
             */
            n1_initial?: string | null;
            /** @description Names of the nodes to empty, at least one. */
            nodes?: string[];
            /** @description Names of nodes to treat as offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description Whether the nodes will only be restarted. Default: false. */
            reboot?: boolean | null;
            /** @description Description of a cluster in Ganeti's text format, as written by `hscan` and `hbal -S`. */
            text?: string | null;
        };
        /** @description All differences between store and fleet. */
        DriftBody: {
            /** @description All differences between store and fleet. */
            drift: components["schemas"]["DriftEntry"][];
        };
        /** @description A difference between store and fleet. */
        DriftEntry: {
            /** @description Identifier of the machine; null if the difference isn't about a machine. */
            host_id?: string | null;
            /**
             * @description Kind of difference: `wrong_clock`, `foreign_fleet`, `machine_gone`, `not_taken_on`, `stray`,
             *     `foreign_guest`, `changed`, `overruled`, `cloud_differs`, `ownerless`, `step_fails`.
             */
            kind: string;
            /** @description Description of the difference, and its remedy. */
            message: string;
            /** @description Whether a repair can correct the difference. */
            repairable: boolean;
        };
        /** @description Power state of a host. */
        EnergyHost: {
            /**
             * Format: int64
             * @description Expected boot time, in seconds.
             */
            boot_seconds: number;
            /**
             * Format: double
             * @description Power draw with all CPUs busy, in watts; null if unknown.
             */
            busy_watts?: number | null;
            /** @description Identifier of the host. */
            host_id: string;
            /** @description Name of the host. */
            hypervisor_hostname: string;
            /**
             * Format: double
             * @description Power draw when on and idle, in watts; null if unknown.
             */
            idle_watts?: number | null;
            /** @description Whether the operator allows the host to be switched off. */
            may_be_off: boolean;
            /** @description Number of measured boots that `boot_seconds` is based on. */
            measured_boots: number;
            /**
             * Format: double
             * @description Power draw when off, in watts; 0 if unknown.
             */
            off_watts: number;
            /** @description Name of the host's free pool. */
            pool: string;
            /** @description Power state: `on`, `shutting_down`, `off`, `booting` or `failed`. */
            power: string;
            /**
             * Format: date-time
             * @description Time since which the host is in this state; null if it is on.
             */
            since?: string | null;
            /** @description Number of times the host was switched off in the last 24 hours. */
            switched_off_lately: number;
        };
        /** @description Power states of hosts. */
        EnergyHostsBody: {
            /** @description Hosts, by identifier. */
            hosts: components["schemas"]["EnergyHost"][];
        };
        /** @description Number of hosts that must be on. */
        EnergyNeed: {
            /** @description Number of hosts. */
            hosts: number;
            /**
             * Format: date-time
             * @description Start of the period, which ends at the next entry's start: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description Power-saving plan. */
        EnergyPlanBody: {
            /**
             * Format: date-time
             * @description End of the plan: UTC, RFC 3339.
             */
            end: string;
            /** @description Power saving mode: `off`, `dry_run` or `on`. */
            mode: string;
            /** @description The plan of each free pool. */
            pools: components["schemas"]["EnergyPool"][];
            /**
             * Format: date-time
             * @description Start of the plan: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description Power-saving plan of a free pool. */
        EnergyPool: {
            /** @description Number of hosts in the pool. */
            hosts: number;
            /** @description Maximum number of hosts that must be on at the same time. */
            hosts_needed: number;
            /** @description Number of hosts that must be on, over time. */
            needed: components["schemas"]["EnergyNeed"][];
            /** @description Hosts that can be off, each with its period. */
            off: components["schemas"]["EnergyRest"][];
            /** @description Name of the pool. */
            pool: string;
            /** @description Identifier of the pool; null for the default pool. */
            pool_id?: string | null;
            /**
             * Format: double
             * @description Energy that the plan saves compared with leaving hosts idle, in kWh. Includes only hosts with known
             *     power draw.
             */
            saved_kwh: number;
        };
        /** @description Energy saved and used in a free pool. */
        EnergyPoolReport: {
            /**
             * Format: int64
             * @description Number of times a host didn't come up in time after it was switched on.
             */
            boots_failed: number;
            /**
             * Format: double
             * @description Time that hosts were leased or ran guests, in host-hours.
             */
            busy_host_hours: number;
            /**
             * Format: double
             * @description Energy drawn by hosts while leased or running guests, in kWh.
             */
            busy_kwh: number;
            /**
             * Format: int64
             * @description Number of hosts with unknown idle draw. Their idle time adds no energy to these sums.
             */
            hosts_without_watts: number;
            /**
             * Format: double
             * @description Time that hosts were on without being leased or running guests, in host-hours.
             */
            idle_host_hours: number;
            /**
             * Format: double
             * @description Energy drawn by hosts while idle, in kWh.
             */
            idle_kwh: number;
            /**
             * Format: int64
             * @description Duration of the longest boot, in seconds; null if no boot was measured.
             */
            longest_boot_seconds?: number | null;
            /**
             * Format: double
             * @description Time that hosts were off, in host-hours.
             */
            off_host_hours: number;
            /** @description Name of the pool; null if it no longer exists. */
            pool?: string | null;
            /** @description Identifier of the pool; null for the default pool. */
            pool_id?: string | null;
            /**
             * Format: double
             * @description Energy saved by hosts while off, compared with leaving them idle, in kWh.
             */
            saved_kwh: number;
            /**
             * Format: int64
             * @description Number of times a host was switched off.
             */
            switched_off: number;
            /**
             * Format: int64
             * @description Number of times a host was switched on again.
             */
            switched_on: number;
            /**
             * Format: double
             * @description Energy used by all hosts while busy, idle and off, in kWh.
             */
            total_kwh: number;
            /**
             * Format: double
             * @description Energy drawn by hosts while off, in kWh.
             */
            used_kwh: number;
        };
        /** @description Energy saved and used. */
        EnergyReportBody: {
            /**
             * Format: date-time
             * @description End of the report, at most the current time: UTC, RFC 3339.
             */
            end: string;
            /** @description Report of each free pool. Pools without hosts in this period are omitted. */
            pools: components["schemas"]["EnergyPoolReport"][];
            /**
             * Format: double
             * @description Energy saved in all pools, in kWh.
             */
            saved_kwh: number;
            /**
             * Format: date-time
             * @description Start of the report: UTC, RFC 3339.
             */
            start: string;
            /**
             * Format: double
             * @description Energy used by all hosts while busy, idle and off, in kWh.
             */
            total_kwh: number;
            /**
             * Format: double
             * @description Energy drawn by hosts while off, in kWh.
             */
            used_kwh: number;
        };
        /** @description Period during which a host can be off. */
        EnergyRest: {
            /** @description Identifier of the host. */
            host_id: string;
            /** @description Name of the host. */
            hypervisor_hostname: string;
            /**
             * Format: date-time
             * @description Time from which the host can be off: UTC, RFC 3339.
             */
            off_from: string;
            /**
             * Format: date-time
             * @description Time at which the host is switched on again: UTC, RFC 3339; null if that is after the planning
             *     horizon.
             */
            on_by?: string | null;
        };
        /** @description Response to a request that was rejected or failed. The request has no effect. */
        ErrorBody: {
            /**
             * Format: int32
             * @description HTTP status.
             */
            error_code: number;
            /** @description Description of the error. */
            error_message: string;
            /**
             * Format: int32
             * @description HTTP status, repeated as in Blazar.
             */
            error_name: number;
            /**
             * @description Details that help to correct the request, such as the number of hosts that each filter ruled out. Not
             *     in Blazar.
             */
            hint?: string | null;
            /** @description Alternatives to the request. Not in Blazar. */
            offers?: components["schemas"]["Offer"][];
        };
        /** @description An event of a lease. */
        Event: {
            /** @description Time of creation: UTC to the second, `2030-01-02 10:00:00`. */
            created_at: string;
            /** @description Type: `start_lease`, `before_end_lease` or `end_lease`, or `timeout` for a lease with a latest start. */
            event_type: string;
            /** @description Identifier of the event, a UUID. */
            id: string;
            /** @description Identifier of the lease. */
            lease_id: string;
            /** @description Status: UNDONE, `IN_PROGRESS`, DONE or ERROR. */
            status: string;
            /** @description Due time: UTC with microseconds. */
            time: string;
            /** @description Time of the lease's last change, in the format of `created_at`. */
            updated_at?: string | null;
        };
        /**
         * @description Question: how many instances of a shape fit? Equivalent to `allot fit`.
         *
         *     Exactly one of `cluster`, `fleet`, `text` and `rapi` selects the cluster.
         */
        FitQuestion: {
            /** @description Whether to place instances only if every node can still be emptied. Default: true. */
            capacity_checks?: boolean | null;
            /** @description Name of a cluster, as configured by the operator. */
            cluster?: string | null;
            /**
             * Format: int32
             * @description Number of instances that must fit.
             */
            count?: number | null;
            /** @description Disk template of the instances. */
            disk_template?: string | null;
            /** @description True selects the service's own fleet: its hosts as nodes, and their guests as instances. */
            fleet?: boolean | null;
            /** @description Name of the group to place instances in. Default: all groups. */
            group?: string | null;
            /** @description Whether to check redundancy in each group separately. Default: false. */
            independent_groups?: boolean | null;
            /**
             * Format: int32
             * @description Maximum number of instances to count.
             */
            limit?: number | null;
            /**
             * Format: double
             * @description Maximum number of virtual CPUs per physical CPU. Default: the policy's limit.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Minimum share of each node's disk that stays free, from 0 to 1.
             */
            min_disk?: number | null;
            /**
             * @description Kind of free memory that decides which nodes fail N+1 before any changes: `recorded` or
             *     `reported`.
             */
            n1_initial?: string | null;
            /** @description Names of nodes to treat as offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description Shape of an instance: `DISK,RAM,CPUS[,SPINDLES]`. Required. */
            shape?: string;
            /** @description Description of a cluster in Ganeti's text format, as written by `hscan` and `hbal -S`. */
            text?: string | null;
        };
        /** @description A flavor. */
        Flavor: {
            /**
             * Format: int32
             * @description Ephemeral disk in GiB.
             */
            "OS-FLV-EXT-DATA:ephemeral": number;
            /**
             * Format: int32
             * @description Root disk in GiB.
             */
            disk: number;
            /** @description Requirements on hosts, as extra specs. */
            extra_specs: {
                [key: string]: string;
            };
            /** @description Identifier of the flavor. */
            id: string;
            /** @description Name of the flavor. */
            name: string;
            /** @description Whether every project can use the flavor. */
            "os-flavor-access:is_public": boolean;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            ram: number;
            /**
             * Format: float
             * @description Always 1.
             */
            rxtx_factor: number;
            /**
             * Format: int32
             * @description Swap in MiB.
             */
            swap: number;
            /**
             * Format: int32
             * @description Number of virtual CPUs.
             */
            vcpus: number;
        };
        /** @description Free capacity for instances of a flavor over time, in the format of the clients of Chameleon's Blazar. */
        FlavorAvailability: {
            /** @description Free capacity, in chronological order and without gaps. */
            availability: components["schemas"]["FlavorStep"][];
            /** @description Identifier of the flavor. */
            flavor_id: string;
        };
        /** @description A flavor. */
        FlavorBody: {
            /** @description A flavor. */
            flavor: components["schemas"]["Flavor"];
        };
        /** @description Flavor to create, with Nova's field names. */
        FlavorCreate: {
            /**
             * Format: int32
             * @description Ephemeral disk in GiB. Default: 0.
             */
            "OS-FLV-EXT-DATA:ephemeral"?: number | null;
            /**
             * Format: int32
             * @description Root disk in GiB.
             */
            disk: number;
            /** @description Requirements on hosts, as extra specs. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Identifier of the flavor. Default: generated. */
            id?: string | null;
            /** @description Name of the flavor. */
            name: string;
            /** @description Whether every project can use the flavor. Default: true. */
            "os-flavor-access:is_public"?: boolean | null;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            ram: number;
            /**
             * Format: float
             * @description Ignored. Accepted because answers contain it.
             */
            rxtx_factor?: number | null;
            /**
             * Format: int32
             * @description Swap in MiB. Default: 0.
             */
            swap?: number | null;
            /**
             * Format: int32
             * @description Number of virtual CPUs.
             */
            vcpus: number;
        };
        /** @description Free capacity over time, in instances of each flavor. */
        FlavorInstancesBody: {
            /** @description One entry for each flavor. */
            flavor_instances: components["schemas"]["FlavorAvailability"][];
        };
        /** @description Period of constant free capacity. */
        FlavorStep: {
            /**
             * Format: int64
             * @description Number of instances that the free capacity is enough for.
             */
            available: number;
            /** @description End of the period, in the format of `start`. */
            end: string;
            /** @description Start of the period: UTC, `YYYY-MM-DD HH:MM`, as clients parse it. */
            start: string;
            /**
             * Format: int64
             * @description Number of instances that the total capacity is enough for, including reserved capacity.
             */
            total: number;
        };
        /** @description All flavors. */
        FlavorsBody: {
            /** @description All flavors. */
            flavors: components["schemas"]["Flavor"][];
        };
        /** @description A floating IP that can be leased. */
        FloatingIp: {
            /** @description Time at which the address was added: UTC to the second. */
            created_at: string;
            /** @description The IP address. */
            floating_ip_address: string;
            /** @description Identifier of the network. */
            floating_network_id: string;
            /** @description Identifier of the floating IP, a UUID. */
            id: string;
            /** @description Whether the address can be reserved. */
            reservable: boolean;
            /** @description Identifier of the subnet that contains the address. */
            subnet_id: string;
            /** @description Always null, since floating IPs don't change. */
            updated_at?: string | null;
        };
        /** @description A floating IP. */
        FloatingIpBody: {
            /** @description A floating IP. */
            floatingip: components["schemas"]["FloatingIp"];
        };
        /** @description Floating IP to add. */
        FloatingIpCreate: {
            /** @description The IP address. */
            floating_ip_address: string;
            /** @description Identifier of the network. */
            floating_network_id: string;
        };
        /** @description Floating IPs, by identifier. */
        FloatingIpsBody: {
            /** @description Floating IPs, by identifier. */
            floatingips: components["schemas"]["FloatingIp"][];
            /** @description Link to the next page, if the request has a limit; absent on the last page. */
            floatingips_links?: components["schemas"]["Link"][];
        };
        /** @description A free pool. */
        FreePool: {
            /**
             * Format: date-time
             * @description Time of creation: UTC to the second; null for the default pool.
             */
            created_at?: string | null;
            /** @description Default end action of leases on hosts of the pool. Null: the service's default. */
            end_action?: string | null;
            /** @description Capabilities of all hosts in the pool. Capabilities of a host take precedence. */
            extra_specs: {
                [key: string]: string;
            };
            /** @description Number of hosts in the pool, leased or not. */
            hosts: number;
            /** @description Identifier of the pool. */
            id: string;
            /** @description Name of the pool. */
            name: string;
            /**
             * Format: date-time
             * @description Time of the last change: UTC to the second.
             */
            updated_at?: string | null;
        };
        /** @description A free pool. */
        FreePoolBody: {
            /** @description A free pool. */
            freepool: components["schemas"]["FreePool"];
        };
        /** @description Changes to a free pool. Absent fields stay unchanged. */
        FreePoolChange: {
            /** @description Default end action of leases on hosts of the pool. Null: the service's default. */
            end_action?: string | null;
            /** @description Capabilities that all hosts of the pool have. Replaces all previous ones. */
            extra_specs?: {
                [key: string]: string;
            } | null;
            /** @description New name. Names are unique. */
            name?: string | null;
        };
        /** @description Free pool to create. */
        FreePoolCreate: {
            /**
             * @description Default end action of leases on hosts of the pool: `delete`, `keep`, `snapshot` or `migrate`. Absent:
             *     the service's default.
             */
            end_action?: string | null;
            /** @description Capabilities that all hosts of the pool have, by name. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Unique name. */
            name: string;
        };
        /** @description All free pools. */
        FreePoolsBody: {
            /** @description All free pools. */
            freepools: components["schemas"]["FreePool"][];
        };
        /** @description Period of constant free capacity. */
        FreeStep: {
            /**
             * Format: date-time
             * @description End of the period: UTC, RFC 3339.
             */
            end: string;
            /**
             * Format: int64
             * @description Number of free hosts, instances or addresses.
             */
            free: number;
            /**
             * Format: date-time
             * @description Start of the period: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description A host. Extra capabilities are additional fields with strings as values. */
        Host: {
            /** @description Availability zone; empty if unknown. */
            availability_zone: string;
            /** @description Description of the CPU: JSON in a string. */
            cpu_info: string;
            /** @description Time at which the host was added: UTC to the second. */
            created_at: string;
            /** @description Name of the host. */
            hypervisor_hostname: string;
            /** @description Type of the hypervisor: `QEMU`. */
            hypervisor_type: string;
            /**
             * Format: int64
             * @description Version of the hypervisor, as a number.
             */
            hypervisor_version: number;
            /** @description Identifier of the host: decimal digits, because clients interpret everything else as a name. */
            id: string;
            /**
             * Format: int32
             * @description Disk in GiB.
             */
            local_gb: number;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory_mb: number;
            /** @description Whether new leases can use the host: the operator allows it, and the host works. */
            reservable: boolean;
            /** @description Name of the host's compute service. */
            service_name: string;
            /** @description Always null. */
            status?: string | null;
            /** @description Always null, since the service doesn't use trusts. */
            trust_id?: string | null;
            /** @description Time of the last change: UTC to the second. */
            updated_at?: string | null;
            /**
             * Format: int32
             * @description Number of virtual CPUs.
             */
            vcpus: number;
        } & {
            [key: string]: string;
        };
        /** @description Whether a host can accept an instance. */
        HostAnswer: {
            /** @description Whether the host can accept the instance. */
            allowed: boolean;
            /** @description Name of the host. */
            host: string;
            /** @description Reason the host can't accept the instance; null if it can. */
            reason?: string | null;
            /**
             * Format: date-time
             * @description Time until which the instance can stay: UTC to the second; null if no known lease limits it.
             */
            until?: string | null;
        };
        /** @description A host. */
        HostBody: {
            /** @description A host. */
            host: components["schemas"]["Host"];
        };
        /** @description Changes to a host. Absent fields stay unchanged. */
        HostChange: {
            /**
             * @description Whether new leases can use the host. If it is closed, leases that haven't started get other hosts, if
             *     there are any; running leases continue on it.
             */
            reservable?: boolean | null;
        } & {
            [key: string]: string | null;
        };
        /** @description Host to add, named by `name` or `id`. All other fields are extra capabilities. */
        HostCreate: {
            /** @description Identifier of the host. Ignored if `name` is given. */
            id?: string | null;
            /** @description Name of the host. */
            name?: string | null;
        } & {
            [key: string]: string;
        };
        /** @description Hosts that can accept an instance. */
        HostsAnswer: {
            /** @description Answer for each host, in the order of the request. */
            hosts: components["schemas"]["HostAnswer"][];
            /** @description Kind of the instance: `reserved`, `regular` or `preemptible`. */
            kind: string;
        };
        /** @description Hosts, by identifier. */
        HostsBody: {
            /** @description Hosts, by identifier. */
            hosts: components["schemas"]["Host"][];
            /** @description Link to the next page, if the request has a limit; absent on the last page. */
            hosts_links?: components["schemas"]["Link"][];
        };
        /** @description Instance to find hosts for. */
        HostsQuestion: {
            /**
             * Format: int32
             * @description Disk in GiB. Default: 0, if `vcpus` and `memory_mb` are given.
             */
            disk_gb?: number | null;
            /** @description Properties of the flavor. `blazar:preemptible` sets whether the instance is preemptible. */
            flavor_properties?: {
                [key: string]: string;
            };
            /**
             * @description Names of the hosts to check. Can include hosts that the service doesn't manage. Default: all hosts of
             *     the service.
             */
            hosts?: string[] | null;
            /** @description Properties of the image. `blazar:preemptible` sets whether the instance is preemptible. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: uuid
             * @description Identifier of the instance, if it exists already. A host is allowed if the service is moving the
             *     instance there.
             */
            instance_id?: string | null;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory_mb?: number | null;
            /** @description Project of the instance. Default: the caller's project. */
            project_id?: string | null;
            scheduler_hints?: components["schemas"]["LeaseHints"] | null;
            /**
             * Format: int32
             * @description Number of virtual CPUs. Without a size, free capacity isn't checked.
             */
            vcpus?: number | null;
            /** @description Properties of each volume. `blazar:preemptible` sets whether the instance is preemptible. */
            volume_properties?: {
                [key: string]: string;
            }[];
        };
        /** @description An instance. */
        Instance: {
            /** @description Whether the instance is on a host of a lease that doesn't use it. It leaves as soon as the lease does. */
            backfills: boolean;
            /**
             * Format: date-time
             * @description Time of the request: UTC to the second.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Time by which a running preemptible instance is deleted because of its maximum lifetime: UTC to the
             *     second. Null if its lifetime isn't limited, and for instances that aren't preemptible.
             */
            deadline?: string | null;
            departure?: components["schemas"]["Departure"] | null;
            /**
             * Format: int32
             * @description Disk in GiB.
             */
            disk_gb: number;
            /** @description Action at preemption: `delete`, or `stop`, which keeps the instance. Null if it isn't in a class. */
            end_state?: string | null;
            /**
             * @description Name of the host; null while the instance isn't on a host. Outside of leases, null for callers who
             *     can't see hosts.
             */
            host?: string | null;
            /** @description Identifier of the instance, a UUID. */
            id: string;
            /**
             * @description Kind: `reserved` in a lease, `regular`, or `preemptible`, which is preempted for the next lease of its
             *     host.
             */
            kind: string;
            /**
             * Format: date-time
             * @description Time since which the instance runs: UTC to the second. Null until it runs.
             */
            launched_at?: string | null;
            /** @description Identifier of the lease that the instance is part of; null if it isn't part of a lease, or no longer. */
            lease_id?: string | null;
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory_mb: number;
            /** @description Name of the instance. */
            name: string;
            /**
             * Format: int64
             * @description Seconds between the preemption notice and deletion; null if the instance isn't in a class.
             */
            notice_seconds?: number | null;
            /** @description Class of a preemptible instance; null if it isn't in a class. */
            preemptible_class?: string | null;
            /** @description Project that owns the instance. */
            project_id: string;
            /** @description Whether the instance gets a successor after preemption. */
            requeue: boolean;
            /** @description Identifier of the reservation in that lease. */
            reservation_id?: string | null;
            /**
             * @description Identifier of the kept instance that this one resumes; null once it runs, and if it doesn't resume an
             *     instance.
             */
            resumes?: string | null;
            /**
             * Format: date-time
             * @description Time until which a preemptible instance can stay on its host, unless the host fails or a lease is
             *     created that starts sooner: UTC to the second. Null if no lease of its host is known and its lifetime
             *     isn't limited, and for instances that aren't preemptible. The current time if it `backfills`.
             */
            safe_until?: string | null;
            /**
             * @description Status: `BUILD`, `ACTIVE`, `DELETING` or `ERROR`; `QUEUED` if it starts as soon as there is capacity;
             *     `SHELVED_OFFLOADED` if it was preempted and is kept.
             */
            status: string;
            /**
             * @description Reason the instance couldn't be started, or that its host has failed; null otherwise. Callers who can
             *     see hosts get more details.
             */
            status_reason?: string | null;
            /**
             * Format: date-time
             * @description Time of the last change: UTC to the second.
             */
            updated_at?: string | null;
            /** @description User who created the instance. */
            user_id: string;
            /**
             * Format: int32
             * @description Number of virtual CPUs.
             */
            vcpus: number;
        };
        /** @description An instance. */
        InstanceBody: {
            /** @description An instance. */
            instance: components["schemas"]["Instance"];
        };
        /** @description Instance to start. */
        InstanceCreate: {
            /**
             * Format: int32
             * @description Disk in GiB. Default: 0, if `vcpus` and `memory_mb` are given.
             */
            disk_gb?: number | null;
            /** @description Properties of the flavor. `blazar:preemptible` sets whether the instance is preemptible. */
            flavor_properties?: {
                [key: string]: string;
            };
            /** @description Properties of the image. `blazar:preemptible` sets whether the instance is preemptible. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Memory in MiB.
             */
            memory_mb?: number | null;
            /** @description Name of the instance. */
            name: string;
            /** @description Whether a preempted instance gets a successor, which starts as soon as there is capacity. */
            requeue?: boolean;
            scheduler_hints?: components["schemas"]["LeaseHints"] | null;
            /**
             * Format: int32
             * @description Number of virtual CPUs. The size (`vcpus`, `memory_mb` and `disk_gb`) can be omitted if the
             *     reservation has one.
             */
            vcpus?: number | null;
            /** @description Properties of each volume. `blazar:preemptible` sets whether the instance is preemptible. */
            volume_properties?: {
                [key: string]: string;
            }[];
        };
        /** @description Capacity for instances. */
        Instances: {
            /** @description True means all instances on one host, false means each on a different host, null means any host. */
            affinity?: boolean | null;
            /**
             * Format: int32
             * @description Number of the host aggregate; null until it is created, and if the fleet has no aggregates.
             */
            aggregate_id?: number | null;
            /**
             * Format: int32
             * @description Number of instances.
             */
            amount: number;
            /**
             * Format: int64
             * @description Disk of each instance, in GiB.
             */
            disk_gb: number;
            /**
             * Format: int32
             * @description Ephemeral disk of each instance, in GiB, if the request had one. Not in Blazar.
             */
            ephemeral_gb?: number | null;
            /** @description Extra specs of the instances' flavor, if the request had any. Not in Blazar. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Flavor to start instances with: the identifier of the reservation. */
            flavor_id: string;
            /**
             * Format: int64
             * @description Memory of each instance, in MiB.
             */
            memory_mb: number;
            /** @description Requirements on hosts: a JSON expression in a string. For a flavor reservation, the flavor as JSON. */
            resource_properties?: string | null;
            /** @description Server group to start instances in, if `affinity` isn't null; null until it is created. */
            server_group_id?: string | null;
            /**
             * @description Kind of failure that leaves capacity for all instances: `host`, or a location property, such as
             *     `rack`.
             */
            survives?: string | null;
            /**
             * Format: int64
             * @description Number of virtual CPUs of each instance.
             */
            vcpus: number;
        };
        /** @description Instances, by time of creation. */
        InstancesBody: {
            /** @description Instances, by time of creation. */
            instances: components["schemas"]["Instance"][];
            /** @description Link to the next page, if the request has a limit; absent on the last page. */
            instances_links?: components["schemas"]["Link"][];
        };
        /** @description A lease. */
        Lease: {
            /**
             * @description Whether preemptible instances can run on whole hosts of the lease while it doesn't use them. Not in
             *     Blazar.
             */
            backfill?: boolean;
            cost?: components["schemas"]["Cost"] | null;
            /** @description Time of creation: UTC to the second, `2030-01-02 10:00:00`. */
            created_at: string;
            /** @description Whether resources of the lease are missing because they failed and no replacement was found. */
            degraded: boolean;
            /** @description Action on the lease's guests at its end: delete, keep, snapshot or migrate. Not in Blazar. */
            end_action: string;
            /** @description End, in the format of `start_date`. */
            end_date: string;
            /** @description Scheduled events. */
            events: components["schemas"]["Event"][];
            /** @description Identifier of the lease, a UUID. */
            id: string;
            /**
             * @description Status, as named by the lease types: INACTIVE, IN-PROGRESS, ACTIVE, TIMEDOUT, TERMINATED or FAILURE.
             *     Not in Blazar.
             */
            lease_state: string;
            /** @description Type: SCHEDULE, IMMEDIATE or BEST-EFFORT. Not in Blazar. */
            lease_type: string;
            /** @description Name of the lease. */
            name: string;
            plan?: components["schemas"]["PlanSummary"] | null;
            /** @description Project that owns the lease. */
            project_id: string;
            /** @description Reserved resources. */
            reservations: components["schemas"]["Reservation"][];
            scheduler_hints?: components["schemas"]["SchedulerHints"] | null;
            /** @description Identifier of the series that the lease belongs to; absent if it doesn't recur. Not in Blazar. */
            series_id?: string | null;
            /** @description Start: UTC with microseconds, `2030-01-02T10:00:00.000000`. */
            start_date: string;
            /** @description Status: PENDING, STARTING, ACTIVE, TERMINATING, TERMINATED, DELETING or ERROR. */
            status: string;
            /**
             * @description Reason the lease is blocked, failed or was ended early; null otherwise. Callers who can see hosts get
             *     more details. Not in Blazar.
             */
            status_reason?: string | null;
            /**
             * Format: date-time
             * @description Latest start: RFC 3339, UTC. Null for scheduled leases. Not in Blazar.
             */
            timeout_date?: string | null;
            /** @description Always null, since the service doesn't use trusts. */
            trust_id?: string | null;
            /** @description Time of the last change, in the format of `created_at`. */
            updated_at?: string | null;
            usage?: components["schemas"]["LeaseUsage"] | null;
            /** @description User who created the lease. */
            user_id: string;
        };
        /** @description A lease. */
        LeaseBody: {
            /** @description A lease. */
            lease: components["schemas"]["Lease"];
        };
        /** @description Changes to a lease. Absent fields stay unchanged. */
        LeaseChange: {
            /**
             * @description Whether preemptible instances can run on whole hosts of the lease while it doesn't use them. Not in
             *     Blazar.
             */
            backfill?: boolean;
            /** @description New time of the action before the end. */
            before_end_date?: string | null;
            /**
             * @description Action on the lease's guests at its end: `delete`, `keep`, `snapshot` or `migrate`. Can be changed
             *     until the end. Not in Blazar.
             */
            end_action?: string;
            /** @description New end, in the format of `start_date`. */
            end_date?: string | null;
            /** @description New name. */
            name?: string;
            /** @description Changes to reservations. */
            reservations?: components["schemas"]["ReservationChange"][];
            /** @description New start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. */
            start_date?: string | null;
        };
        /** @description Lease to create. */
        LeaseCreate: {
            /**
             * @description Whether preemptible instances can run on whole hosts of the lease while it doesn't use them. Not in
             *     Blazar.
             */
            backfill?: boolean;
            /**
             * @description Time of the action before the end. By default, that is `leases.before_end_lead` (an operator setting)
             *     before the end.
             */
            before_end_date?: string | null;
            /**
             * @description Duration in whole minutes, instead of an end: `P1DT4H`, `1d4h`. Together with an end, the lease has
             *     this duration at any time between `start_date` and `end_date`. Not in Blazar.
             */
            duration?: string | null;
            /**
             * @description Action on the lease's guests at its end: `delete`; `keep`; `migrate` moves them to hosts outside of
             *     leases, as far as possible; `snapshot` makes images of guests on the lease's hosts, then deletes them.
             *     Default: the end action of the hosts' free pool, otherwise `leases.end_action`, an operator setting.
             *     Not in Blazar.
             */
            end_action?: string | null;
            /**
             * @description End, in the format of `start_date`. Can be omitted if `duration` is given. For a best-effort lease,
             *     only the time between `start_date` and this date matters: it is the length of the lease.
             */
            end_date?: string | null;
            /**
             * @description Ignored, but accepted because clients send it. Exception: a client without the field `lease_type` can
             *     set it with an event of type `lease_type:TYPE`. With `lease_type:best-effort`, the event's
             *     `event_date` is the `timeout_date`.
             */
            events?: unknown[];
            /**
             * @description `SCHEDULE` (the default) starts the lease at its start date. `IMMEDIATE` starts it now or rejects the
             *     request. `BEST-EFFORT` starts it as soon as possible, before its timeout. Not in Blazar.
             */
            lease_type?: string | null;
            /** @description Name of the lease. Names don't have to be unique. */
            name: string;
            repeat?: components["schemas"]["RepeatCreate"] | null;
            /** @description Resources to reserve. */
            reservations?: components["schemas"]["ReservationCreate"][];
            scheduler_hints?: components["schemas"]["SchedulerHints"] | null;
            /**
             * @description Start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. Required for scheduled leases. For a best-effort
             *     lease, the earliest start.
             */
            start_date?: string | null;
            /**
             * @description Maximum time that a best-effort lease waits for its start, as a duration. Default:
             *     `leases.best_effort_timeout`, an operator setting. Not in Blazar.
             */
            timeout?: string | null;
            /** @description Latest start of a best-effort lease, instead of `timeout`. Not in Blazar. */
            timeout_date?: string | null;
            /** @description Whether to join the waitlist instead of being rejected when capacity is short. Not in Blazar. */
            waitlist?: boolean;
        };
        /**
         * @description Lease or reservation that an instance becomes part of, at most one of the two, and constraints on its
         *     host.
         */
        LeaseHints: {
            /** @description Identifiers of instances of the project. The new instance doesn't run on any of their hosts. */
            different_host?: string[];
            /**
             * Format: uuid
             * @description Identifier of an active lease. The instance runs in its first reservation of hosts or of capacity for
             *     instances.
             */
            lease?: string | null;
            /**
             * @description Whether the instance is preempted for leases. Default: the operator's setting for the project. Can't
             *     be true in a lease.
             */
            preemptible?: boolean | null;
            /** @description Class of the preemptible instance, which determines its preemption notice. Implies `preemptible`. */
            preemptible_class?: string | null;
            /**
             * Format: uuid
             * @description Identifier of a reservation of an active lease.
             */
            reservation?: string | null;
            /** @description Identifiers of instances of the project. The new instance runs on one of their hosts. */
            same_host?: string[];
        };
        /** @description A new lease. For a recurring request, the first lease of the series. */
        LeaseMadeBody: {
            /** @description The lease. */
            lease: components["schemas"]["Lease"];
            series?: components["schemas"]["Series"] | null;
        };
        /** @description Lease pool: the hosts of a reservation while its lease runs. */
        LeasePool: {
            /**
             * Format: double
             * @description CPU overcommit ratio of the hosts. Null: the ratio of each host, or no overcommitment if it has no
             *     ratio.
             */
            cpu_allocation_ratio?: number | null;
            /** @description Number of hosts. */
            hosts: number;
            /** @description Identifier of the pool, which is the identifier of its reservation. */
            id: string;
            /** @description Identifier of the lease. */
            lease_id: string;
            /** @description Metadata for schedulers: `filter_lease_id`, `blazar:owner`, and ratios. */
            metadata: {
                [key: string]: string;
            };
            /** @description Name of the pool. Default: its identifier. */
            name: string;
            /** @description Project that owns the lease. */
            project_id: string;
            /**
             * Format: double
             * @description Memory overcommit ratio of the hosts. Null: the ratio of each host, or no overcommitment if it has no
             *     ratio.
             */
            ram_allocation_ratio?: number | null;
        };
        /** @description A lease pool. */
        LeasePoolBody: {
            /** @description A lease pool. */
            leasepool: components["schemas"]["LeasePool"];
        };
        /** @description Changes to a lease pool. Absent fields stay unchanged; null resets a field. */
        LeasePoolChange: {
            /**
             * Format: double
             * @description CPU overcommit ratio of the pool's hosts, from 0.001 to 1000. Null: the ratio of each host.
             */
            cpu_allocation_ratio?: number | null;
            /** @description New name. Null: the pool's identifier. */
            name?: string | null;
            /**
             * Format: double
             * @description Memory overcommit ratio of the pool's hosts, from 0.001 to 1000. Null: the ratio of each host.
             */
            ram_allocation_ratio?: number | null;
        };
        /** @description Lease pool to create. Its lease starts immediately. */
        LeasePoolCreate: {
            /** @description Duration of the lease in whole minutes: `P1DT4H`, `1d4h`. Either this or `end_date` is required. */
            duration?: string | null;
            /** @description Action on the lease's guests at its end: `delete`, `keep`, `snapshot` or `migrate`. */
            end_action?: string | null;
            /** @description End of the lease. Can be given instead of `duration`. */
            end_date?: string | null;
            /** @description Requirements on hosts, as extra specs. */
            extra_specs?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Number of hosts.
             */
            host_count: number;
            /** @description Name of the pool. Default: its identifier. */
            name?: string | null;
            /** @description Project that owns the lease. Default: the caller's project. Only administrators can name another one. */
            project_id?: string | null;
            /** @description Synonym for `project_id`. */
            tenant_id?: string | null;
        };
        /** @description Hosts to add to a lease pool. */
        LeasePoolGrowth: {
            /** @description Requirements on the new hosts, as extra specs, in addition to those of the reservation. */
            extra_specs?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Number of hosts. Default: 1.
             */
            host_count?: number | null;
        };
        /** @description A host of a lease pool. */
        LeasePoolHost: {
            /** @description Identifier of the host. */
            id: string;
            /** @description Instances on the host. */
            instances: components["schemas"]["LeasePoolInstance"][];
            /** @description Name of the host. */
            name: string;
        };
        /** @description Hosts of a lease pool. */
        LeasePoolHostsBody: {
            /** @description Hosts of a lease pool. */
            hosts: components["schemas"]["LeasePoolHost"][];
        };
        /** @description An instance in a lease pool. */
        LeasePoolInstance: {
            /** @description Identifier of the instance. */
            id: string;
            /** @description Name of the instance; null if it wasn't started through this service. */
            name?: string | null;
        };
        /** @description Host of a lease pool to replace. */
        LeasePoolSwap: {
            /** @description Identifier of the host. */
            host_id: string;
        };
        /** @description Lease pools, by creation time of their leases. */
        LeasePoolsBody: {
            /** @description Lease pools, by creation time of their leases. */
            leasepools: components["schemas"]["LeasePool"][];
            /** @description Link to the next page, if the request has a limit; absent on the last page. */
            leasepools_links?: components["schemas"]["Link"][];
        };
        /** @description Usage of a lease. */
        LeaseUsage: {
            /** @description Reserved resources from start to end, with the lease's current dates. */
            reserved: components["schemas"]["Reserved"];
            /** @description Part of `reserved` that is in the past. */
            reserved_so_far: components["schemas"]["Reserved"];
            /** @description Resources used so far by instances in the lease. */
            used: components["schemas"]["Used"];
        };
        /** @description Leases, by time of creation. */
        LeasesBody: {
            /** @description Leases, by time of creation. */
            leases: components["schemas"]["Lease"][];
            /** @description Link to the next page, if the request has a limit; absent on the last page. */
            leases_links?: components["schemas"]["Link"][];
        };
        /** @description A link. */
        Link: {
            /** @description URL of the link. */
            href: string;
            /** @description Relation of the link: `next`, `self`. */
            rel: string;
        };
        /** @description Maintenance window of a host. */
        Maintenance: {
            /**
             * Format: date-time
             * @description End, in UTC; null if no window is available.
             */
            end_date?: string | null;
            /** @description Name of the host. */
            host: string;
            /** @description Identifier of the host. */
            host_id: string;
            /** @description Identifier of the lease that reserves the host; null if no maintenance was booked. */
            lease_id?: string | null;
            /**
             * Format: date-time
             * @description Start, in UTC; null if no window is available.
             */
            start_date?: string | null;
        };
        /** @description Maintenance windows, one for each host. */
        MaintenanceBody: {
            /** @description Maintenance windows, one for each host. */
            maintenance: components["schemas"]["Maintenance"][];
        };
        /** @description Maintenance to book, for hosts or for all hosts of a free pool. */
        MaintenanceCreate: {
            /** @description Latest end, in the format of `not_before`. Default: 4 weeks after `not_before`. */
            before?: string | null;
            /** @description Duration of the maintenance: `PT2H`, `2h`. */
            duration: string;
            /** @description Name or identifier of a free pool. */
            freepool?: string | null;
            /** @description Names or identifiers of hosts. */
            hosts?: string[];
            /**
             * @description Time before and after the maintenance during which the host isn't leased, as a duration. Default: 10
             *     minutes.
             */
            margin?: string | null;
            /** @description Earliest start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. Default: now. */
            not_before?: string | null;
        };
        /** @description Number of rejected requests that additional capacity would have met. */
        MetBy: {
            /**
             * Format: int64
             * @description Number of requests that they would have met.
             */
            met: number;
            /**
             * Format: int32
             * @description Number of additional hosts, instances or addresses.
             */
            more: number;
        };
        /** @description Names of users and projects. */
        Names: {
            /** @description Names of projects, by identifier. */
            projects: {
                [key: string]: string;
            };
            /** @description Names of users, by identifier. */
            users: {
                [key: string]: string;
            };
        };
        /** @description A notification. */
        Notification: {
            /** @description Kind of event: `lease.create`, `lease.event.start_lease`, `host.boot_failed`. */
            event_type: string;
            /** @description Identifier of the lease; null if the event is about an instance or a host. */
            lease_id?: string | null;
            /**
             * Format: int64
             * @description Number of the notification. Numbers increase over time.
             */
            number: number;
            /** @description The lease, instance or host at the time of the event. */
            payload: unknown;
            /** @description Project that owns the object; null if the event is about a host. */
            project_id?: string | null;
            /**
             * Format: date-time
             * @description Time of creation: UTC, RFC 3339.
             */
            timestamp: string;
        };
        /** @description Notifications. */
        NotificationsBody: {
            /**
             * Format: int64
             * @description Number to pass as `after` in the next request.
             */
            last: number;
            /** @description Notifications, oldest first. */
            notifications: components["schemas"]["Notification"][];
        };
        /** @description Instances observed on the hosts of a lease. */
        OccupancyBody: {
            /**
             * Format: int64
             * @description Number to pass as `after` in the next request.
             */
            last: number;
            /** @description Intervals, oldest first. */
            occupancy: components["schemas"]["OccupancyInterval"][];
            /**
             * Format: date-time
             * @description Time until which all observations are recorded: UTC, RFC 3339. Intervals without an end lasted at
             *     least until then.
             */
            seen_until?: string | null;
        };
        /** @description Period during which observations of a leased host were the same. */
        OccupancyInterval: {
            /**
             * @description Whether this is the first interval of the host in the lease. If the first returned interval of a host
             *     doesn't say so, older ones have expired.
             */
            begins: boolean;
            /**
             * Format: date-time
             * @description End of the last observation in the interval. For `unseen`, beginning of the next observation. Null
             *     while it lasts.
             */
            end?: string | null;
            /** @description Name of the host; null if the service no longer has the host. */
            host?: string | null;
            /** @description Identifier of the host. */
            host_id: string;
            /** @description Identifier of the instance. For instances of other projects, null unless the caller can see hosts. */
            instance_id?: string | null;
            /**
             * @description Observation. `fenced`: instances can't be started on the host, and instances of other projects leave.
             *     `verified`: instances can't be started on the host, and only instances of the lease were found.
             *     `held`: only the lease's project can start instances. `unfenced`: the lease has the host, but the
             *     fence is missing, so other projects can start instances. `releasing`: the host is being taken back
             *     from the lease. `released`: the lease has returned the host. `instance`: an instance of the lease's
             *     project was on the host. `foreign_instance`: an instance of another or an unknown project was on the
             *     host. `unseen`: the instances on the host weren't observed.
             */
            kind: string;
            /**
             * Format: int64
             * @description Number of the interval. Numbers increase over time.
             */
            number: number;
            /** @description Project of the instance; null if unknown. For other projects, null unless the caller can see hosts. */
            project_id?: string | null;
            /**
             * Format: date-time
             * @description Beginning of the first observation in the interval, or its end if it is the first observation of the
             *     host. For `unseen`, end of the previous observation. UTC, RFC 3339.
             */
            start: string;
        };
        /** @description Alternative to a rejected request. */
        Offer: {
            /**
             * Format: date-time
             * @description Time until which the offer can be accepted; null if it isn't held.
             */
            expires_at?: string | null;
            /**
             * @description Identifiers of the hosts that are reserved until `expires_at`. Only for callers who can see
             *     allocations of hosts.
             */
            host_ids?: string[] | null;
            /** @description Identifier, for accepting the offer; null if the offer isn't held, so no capacity is reserved for it. */
            id?: string | null;
            /**
             * @description Difference from the request: `later_start`, `shorter_duration`, `fewer_hosts`, `other_pool` or
             *     `longer_timeout`.
             */
            kind: string;
            /**
             * @description The offered lease. If the offer for a new lease is accepted, the lease has the identifier of the
             *     offer.
             */
            lease: components["schemas"]["Lease"];
            /** @description Identifier of the lease that would change; null for a new lease. */
            lease_id?: string | null;
            /**
             * Format: int64
             * @description Position among the held offers to the caller, counted from 1. Offers of the newest rejection come
             *     first. Null if the offer isn't held or was made to another user.
             */
            number?: number | null;
        };
        /** @description An offer. */
        OfferBody: {
            /** @description An offer. */
            offer: components["schemas"]["Offer"];
        };
        /** @description An available hint. */
        OfferedHint: {
            /** @description `hosts` if the hint selects hosts of the lease; `instances` if instances inherit it. */
            applies_to: string;
            /** @description Effect of the hint. */
            description: string;
            /**
             * @description Type of the value: `expression`, `hosts`, `leases` or `choice`. `hosts` and `leases` can have several
             *     values.
             */
            domain: string;
            /** @description Name of the hint. */
            name: string;
            /** @description Hints that can't be combined with this one. All other hints can. */
            not_with: string[];
            /** @description Types of reservations that support the hint. */
            resource_types: string[];
            /** @description All possible values; null if they can't be listed, or the caller can't see them. */
            values?: string[] | null;
        };
        /** @description Available hints, and limits on how strict they can be. */
        OfferedHints: {
            /** @description Available hints. */
            hints: components["schemas"]["OfferedHint"][];
            /**
             * Format: int32
             * @description Minimum number of hosts that must match the hints of a lease, whether they are free or not.
             */
            least_hosts: number;
            /** @description Property with the location of a host. */
            location_property: string;
            /** @description Whether `host` can name a single host. */
            single_host: boolean;
        };
        /** @description Held offers. */
        OffersBody: {
            /** @description Held offers. */
            offers: components["schemas"]["Offer"][];
        };
        /** @description The JSON document that the command prints, in the field with the name of the question. */
        PlacementAnswer: {
            /** @description Output of `allot hbal --json --explain`. */
            balance?: unknown;
            /** @description Output of `allot drain --json`. */
            drain?: unknown;
            /** @description Output of `allot fit --json`. */
            fit?: unknown;
            /** @description Output of `allot whatif --json`. */
            whatif?: unknown;
        };
        /** @description Migration plan of a lease, and its progress. */
        Plan: {
            /**
             * Format: int64
             * @description Number of instances that are on neither their old nor their planned host.
             */
            gone: number;
            /** @description Identifier of the lease. */
            lease_id: string;
            /**
             * Format: int64
             * @description Number of instances that have moved.
             */
            moved: number;
            /** @description Moves, in order. Null for callers who can't see hosts, since the instances belong to other projects. */
            moves?: components["schemas"]["PlannedMove"][] | null;
            summary?: components["schemas"]["PlanSummary"] | null;
        };
        /** @description The migration plan of a lease, and its progress. */
        PlanBody: {
            /** @description The migration plan of a lease, and its progress. */
            plan: components["schemas"]["Plan"];
        };
        /** @description Summary of a lease's migration plan. */
        PlanSummary: {
            /**
             * Format: int64
             * @description Disk to copy, in GiB.
             */
            disk_gb: number;
            /**
             * Format: int64
             * @description Downtime of all instances together, in milliseconds.
             */
            downtime_ms: number;
            /**
             * Format: int64
             * @description Time reserved for the moves, in seconds. If they take longer, the lease is shorter by the difference.
             */
            expected_seconds: number;
            /**
             * Format: int64
             * @description Number of hosts to clear.
             */
            hosts_to_clear: number;
            /**
             * Format: int64
             * @description Number of instances to move to other hosts.
             */
            instances_to_move: number;
            /**
             * Format: int64
             * @description Memory to copy, in MiB.
             */
            memory_mb: number;
        };
        /** @description Move of an instance. */
        PlannedMove: {
            /** @description Name of the old host. */
            from_host: string;
            /** @description Identifier of the instance. */
            instance_id: string;
            /**
             * Format: int32
             * @description Progress of a move in state `moving`, in percent; null if unknown.
             */
            percent?: number | null;
            /** @description State of the move: `waiting`, `moving`, `failing`, `moved`, or `gone`. */
            state: string;
            /** @description Name of the new host. */
            to_host: string;
        };
        /** @description Usage of preemptible instances. */
        PreemptibleBody: {
            /** @description Usage of preemptible instances. */
            preemptible: components["schemas"]["PreemptibleUsage"];
        };
        /** @description Pattern of projects whose instances are preemptible, unless a request says otherwise. */
        PreemptibleProject: {
            /**
             * Format: date-time
             * @description Time at which the pattern was added; null for patterns from the operator's settings.
             */
            created_at?: string | null;
            /** @description Pattern of project identifiers: `*` matches any text and `?` any character. */
            pattern: string;
        };
        /** @description A pattern of projects whose instances are preemptible. */
        PreemptibleProjectBody: {
            /** @description A pattern of projects whose instances are preemptible. */
            project: components["schemas"]["PreemptibleProject"];
        };
        /**
         * @description All patterns of projects whose instances are preemptible. Patterns from the operator's settings come
         *     first.
         */
        PreemptibleProjectsBody: {
            /**
             * @description All patterns of projects whose instances are preemptible. Patterns from the operator's settings come
             *     first.
             */
            projects: components["schemas"]["PreemptibleProject"][];
        };
        /** @description Usage of preemptible instances in a past period. */
        PreemptibleUsage: {
            /**
             * Format: int64
             * @description Number of instances that started running.
             */
            begun: number;
            /**
             * Format: double
             * @description CPUs of instances, in core-hours.
             */
            core_hours: number;
            /**
             * Format: date-time
             * @description End of the period: UTC, RFC 3339.
             */
            end: string;
            /**
             * Format: double
             * @description Running time of all instances, in hours.
             */
            hours: number;
            /**
             * Format: double
             * @description Running time of preempted instances, in hours. This work is lost if they saved nothing.
             */
            hours_lost: number;
            /**
             * Format: int64
             * @description Number of instances that were preempted for leases.
             */
            preempted: number;
            /**
             * Format: date-time
             * @description Start of the period: UTC, RFC 3339.
             */
            start: string;
            /**
             * Format: double
             * @description Share of all CPUs of all hosts that preemptible instances used, from 0 to 1. Null for callers who
             *     can't see hosts.
             */
            utilisation_gained?: number | null;
        };
        /** @description Properties of hosts. */
        PropertiesBody: {
            /** @description Properties of hosts. */
            resource_properties: components["schemas"]["Property"][];
        };
        /**
         * @description A property of hosts: the name of a capability. The other fields are present if the request asks for
         *     details.
         */
        Property: {
            /** @description Whether the property is hidden from lists, unless an administrator requests all properties. */
            private?: boolean | null;
            /** @description Name of the property. */
            property: string;
            /** @description Values of the property on hosts. */
            values?: string[] | null;
        };
        /** @description A property of hosts. */
        PropertyBody: {
            /** @description A property of hosts. */
            resource_property: components["schemas"]["ResourceProperty"];
        };
        /** @description Visibility of a property. */
        PropertyChange: {
            /** @description Whether to hide the property from lists, unless an administrator requests all properties. */
            private: boolean;
        };
        /** @description Responses of a cluster's remote API, version 2. */
        RapiDocuments: {
            /** @description Response to `/2/groups?bulk=1`. */
            groups: unknown;
            /** @description Response to `/2/info`. */
            info: unknown;
            /** @description Response to `/2/instances?bulk=1`. */
            instances: unknown;
            /** @description Response to `/2/nodes?bulk=1`. */
            nodes: unknown;
        };
        /** @description Requests for the same kind of hosts, instances or addresses that were rejected for lack of capacity. */
        RefusedRequests: {
            /**
             * @description Requested resource: properties of hosts (`gpu=a100 and vcpus>=16`), size of instances, a flavor, or a
             *     network; empty for any host.
             */
            kind: string;
            /**
             * @description Number of these requests that additional capacity would have met, each request judged separately.
             *     Empty if more capacity wouldn't have helped.
             */
            met_by: components["schemas"]["MetBy"][];
            /**
             * Format: int64
             * @description Number of rejected requests.
             */
            refused: number;
            /** @description Type of the reservation: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`. */
            resource_type: string;
        };
        /** @description Recurrence of a lease. Requires either `times` or `until`. */
        RepeatCreate: {
            /** @description Calendar interval between starts: `1w`, `1d`, `1mo`. */
            every: string;
            /** @description Whether to skip unavailable dates. If false, one unavailable date rejects the whole request. */
            skip_unavailable?: boolean;
            /** @description Time zone in which leases keep their time of day: `Europe/Paris`. Default: UTC. */
            time_zone?: string | null;
            /**
             * Format: int32
             * @description Number of leases. Can't be combined with `until`.
             */
            times?: number | null;
            /** @description Date before which leases start. Can't be combined with `times`. */
            until?: string | null;
        };
        /** @description A reservation of a lease. */
        Reservation: components["schemas"]["Resource"] & {
            /** @description Time of creation: UTC to the second, `2030-01-02 10:00:00`. */
            created_at: string;
            /** @description Allocated addresses. Not in Blazar. */
            floating_ips?: string[];
            /** @description Names of the allocated hosts, whole or in part. Not in Blazar. */
            hosts?: string[];
            /** @description Identifier of the reservation, a UUID. */
            id: string;
            /** @description Identifier of the lease. */
            lease_id: string;
            /** @description Whether a resource failed and no replacement was found. */
            missing_resources: boolean;
            /** @description Same value as `id`. In Blazar, identifier of a row in another table. */
            resource_id: string;
            /** @description Whether a resource was replaced while the lease was active. */
            resources_changed: boolean;
            /** @description Status: pending, active, deleted or error. */
            status: string;
            /** @description Time of the last change, in the format of `created_at`. */
            updated_at?: string | null;
        };
        /**
         * @description Changes to a reservation, named by `id`. Absent and empty fields stay unchanged. Null removes a
         *     requirement on hosts other than an expression. Fields of other resource types and unknown fields are
         *     ignored.
         */
        ReservationChange: {
            /** @description True places all instances on one host, false places each on a different host, null allows any host. */
            affinity?: boolean | null;
            /** @description Properties whose values must be equal on all hosts. Replaces the whole list. Not in Blazar. */
            alike?: string[] | null;
            /**
             * Format: int32
             * @description Number of instances or addresses.
             */
            amount?: number | null;
            /** @description Availability zone of the hosts. Not in Blazar. */
            availability_zone?: string | null;
            /**
             * @description Action before the end on guests of hosts: `default` (the operator's setting), `snapshot`, or empty for
             *     no action.
             */
            before_end?: string | null;
            /**
             * Format: int32
             * @description Disk of each instance, in GiB.
             */
            disk_gb?: number | null;
            /**
             * Format: int32
             * @description Minimum disk of each host, in GiB. Not in Blazar.
             */
            disk_gib?: number | null;
            /**
             * Format: int32
             * @description Ephemeral disk of each instance, in GiB. Can't be changed. Not in Blazar.
             */
            ephemeral_gb?: number | null;
            /**
             * @description Requirements on hosts, as Nova's extra specs. Replaces all previous ones. Extra specs of instances
             *     can't be changed. Not in Blazar.
             */
            extra_specs?: {
                [key: string]: string;
            } | null;
            /** @description Flavor of the instances. Can't be changed. */
            flavor_id?: string | null;
            /** @description Whether all hosts must have the same CPUs and hypervisor. Not in Blazar. */
            homogeneous?: boolean | null;
            /** @description Requirements on hosts, in the format of a new lease. */
            hypervisor_properties?: string | null;
            /** @description Identifier of the reservation. */
            id: string;
            /** @description Properties of the image that guests will run. Replaces all previous ones. Not in Blazar. */
            image_properties?: {
                [key: string]: string;
            } | null;
            /**
             * Format: int32
             * @description Maximum number of hosts.
             */
            max?: number | null;
            /**
             * Format: int32
             * @description Memory of each instance, in MiB.
             */
            memory_mb?: number | null;
            /**
             * Format: int32
             * @description Minimum memory of each host, in MiB. Not in Blazar.
             */
            memory_mib?: number | null;
            /**
             * Format: int32
             * @description Minimum number of hosts.
             */
            min?: number | null;
            /** @description Network of the addresses. */
            network_id?: string | null;
            /** @description Region of the hosts. Not in Blazar. */
            region?: string | null;
            /** @description Specific addresses to reserve. */
            required_floatingips?: string[] | null;
            /** @description More requirements on hosts, also for hosts of instances. Hosts must match both. */
            resource_properties?: string | null;
            /** @description Type of the reservation. Can't be changed. */
            resource_type?: string | null;
            /**
             * @description Kind of failure that leaves the lease the hosts that it requests: `host`, or a location property, such
             *     as `rack`. Not in Blazar.
             */
            survives?: string | null;
            /**
             * Format: int32
             * @description Number of virtual CPUs of each instance. For whole hosts, the minimum of each host, which isn't in
             *     Blazar.
             */
            vcpus?: number | null;
        };
        /** @description Resource to reserve. Unknown fields are ignored. */
        ReservationCreate: {
            /** @description Properties whose values must be equal on all hosts, such as `cpu_mhz`. */
            alike?: string[];
            /** @description Availability zone of the hosts. */
            availability_zone?: string | null;
            /** @description Action before the end: `default` (the operator's setting), `snapshot`, or empty for no action. */
            before_end?: string;
            /**
             * Format: int32
             * @description Minimum disk of each host, in GiB.
             */
            disk_gib?: number | null;
            /**
             * @description Requirements on hosts, as Nova's extra specs: `capabilities:cpu_info:arch` with the value
             *     `x86_64`.
             */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Whether all hosts must have the same CPUs and hypervisor. */
            homogeneous?: boolean;
            /** @description Requirements on hosts: a JSON expression in a string, such as `["==", "$rack", "r1"]`. */
            hypervisor_properties?: string | null;
            /** @description Properties of the image that guests will run, by Glance's names. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Maximum number of hosts.
             */
            max: number;
            /**
             * Format: int32
             * @description Minimum memory of each host, in MiB.
             */
            memory_mib?: number | null;
            /**
             * Format: int32
             * @description Minimum number of hosts.
             */
            min: number;
            /**
             * @description Name of the lease pool that the hosts form while the lease runs. Default: the reservation's
             *     identifier.
             */
            pool_name?: string | null;
            /** @description Region of the hosts. This field and all below aren't in Blazar. */
            region?: string | null;
            /** @description More requirements on hosts, in the format of `hypervisor_properties`. Hosts must match both. */
            resource_properties?: string | null;
            /** @enum {string} */
            resource_type: "physical:host";
            /**
             * @description Kind of failure that leaves the lease the hosts that it requests: `host`, or a location property,
             *     such as `rack`. The lease gets the additional hosts that this requires.
             */
            survives?: string | null;
            /**
             * Format: int32
             * @description Minimum number of virtual CPUs of each host.
             */
            vcpus?: number | null;
        } | {
            /**
             * @description True places all instances on one host, false places each on a different host, null allows any
             *     host.
             */
            affinity?: boolean | null;
            /**
             * Format: int32
             * @description Number of instances.
             */
            amount: number;
            /**
             * Format: int32
             * @description Disk of each instance, in GiB.
             */
            disk_gb: number;
            /**
             * Format: int32
             * @description Ephemeral disk of each instance, in GiB. Default: 0. Not in Blazar.
             */
            ephemeral_gb?: number | null;
            /**
             * @description Extra specs of the instances' flavor, in Nova's format: `hw:cpu_policy` with the value
             *     `dedicated`. Hosts must have the resources and traits that they name. Requires the policy rule
             *     `blazar:leases:extra_specs`. Not in Blazar.
             */
            extra_specs?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Memory of each instance, in MiB.
             */
            memory_mb: number;
            /** @description Requirements on hosts: a JSON expression in a string. */
            resource_properties?: string | null;
            /** @enum {string} */
            resource_type: "virtual:instance";
            /**
             * @description Kind of failure that leaves capacity for all instances: `host`, or a location property, such as
             *     `rack`. Not in Blazar.
             */
            survives?: string | null;
            /**
             * Format: int32
             * @description Number of virtual CPUs of each instance.
             */
            vcpus: number;
        } | {
            /** @description Always null. */
            affinity?: boolean | null;
            /**
             * Format: int32
             * @description Number of instances.
             */
            amount: number;
            /** @description Identifier of the flavor. */
            flavor_id: string;
            /** @enum {string} */
            resource_type: "flavor:instance";
            /**
             * @description Kind of failure that leaves capacity for all instances: `host`, or a location property, such as
             *     `rack`. Not in Blazar.
             */
            survives?: string | null;
        } | {
            /**
             * Format: int32
             * @description Number of addresses, including `required_floatingips`.
             */
            amount: number;
            /** @description Identifier of the network. */
            network_id: string;
            /** @description Specific addresses to reserve. */
            required_floatingips?: string[];
            /** @enum {string} */
            resource_type: "virtual:floatingip";
        };
        /** @description Reserved resources. */
        Reserved: {
            /**
             * Format: double
             * @description Reserved addresses, in address-hours.
             */
            address_hours: number;
            /**
             * Format: double
             * @description CPUs of reserved hosts and slots, in core-hours.
             */
            core_hours: number;
            /**
             * Format: double
             * @description Disk of reserved hosts and slots, in GiB-hours.
             */
            disk_gib_hours: number;
            /**
             * Format: double
             * @description Memory of reserved hosts and slots, in GiB-hours.
             */
            gib_hours: number;
            /**
             * Format: double
             * @description Reserved whole hosts, in host-hours.
             */
            host_hours: number;
            /**
             * Format: double
             * @description Reserved slots for instances, in slot-hours.
             */
            slot_hours: number;
        };
        /** @description Reserved resource. */
        Resource: {
            /**
             * Format: int32
             * @description Number of the host aggregate; null until it is created. Absent if the fleet has no aggregates.
             */
            aggregate_id?: number | null;
            /** @description Properties whose values must be equal on all hosts. */
            alike?: string[];
            /** @description Availability zone of the hosts. */
            availability_zone?: string | null;
            /** @description Action before the end: default (the operator's setting), snapshot, or empty for no action. */
            before_end: string;
            /**
             * Format: int32
             * @description Minimum disk of each host, in GiB.
             */
            disk_gib?: number | null;
            /**
             * @description Requirements on hosts, as Nova's extra specs: `capabilities:cpu_info:arch` with the value
             *     `x86_64`.
             */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Flavors for servers on the hosts. Absent unless the hosts accept only servers with these flavors. */
            flavor_ids?: string[];
            /** @description Whether all hosts must have the same CPUs and hypervisor. */
            homogeneous?: boolean;
            /** @description Requirements on hosts: a JSON expression in a string. */
            hypervisor_properties?: string | null;
            /** @description Properties of the image that guests will run, by Glance's names. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Maximum number of hosts.
             */
            max: number;
            /**
             * Format: int32
             * @description Minimum memory of each host, in MiB.
             */
            memory_mib?: number | null;
            /**
             * Format: int32
             * @description Minimum number of hosts.
             */
            min: number;
            /** @description Region of the hosts. This field and all below aren't in Blazar. */
            region?: string | null;
            /** @description More requirements on hosts, in the format of `hypervisor_properties`. */
            resource_properties?: string | null;
            /** @enum {string} */
            resource_type: "physical:host";
            /**
             * @description Kind of failure that leaves the lease the hosts that it requests: `host`, or a location property,
             *     such as `rack`. The lease has the additional hosts that this requires.
             */
            survives?: string | null;
            /**
             * Format: int32
             * @description Minimum number of virtual CPUs of each host.
             */
            vcpus?: number | null;
        } | (components["schemas"]["Instances"] & {
            /** @enum {string} */
            resource_type: "virtual:instance";
        }) | (components["schemas"]["Instances"] & {
            /** @enum {string} */
            resource_type: "flavor:instance";
        }) | {
            /**
             * Format: int32
             * @description Number of addresses, including `required_floatingips`.
             */
            amount: number;
            /** @description Identifier of the network. */
            network_id: string;
            /** @description Specific addresses that the request named. */
            required_floatingips: string[];
            /** @enum {string} */
            resource_type: "virtual:floatingip";
        };
        /**
         * @description A property whose visibility was changed. Dates have microseconds, like dates of leases and unlike dates of
         *     other records: Blazar uses this format here, and gophercloud parses no other.
         */
        ResourceProperty: {
            /** @description Time at which the property was added: UTC with microseconds. */
            created_at: string;
            /** @description Identifier of the property, a UUID. */
            id: string;
            /** @description Whether the property is hidden from lists, unless an administrator requests all properties. */
            private: boolean;
            /** @description Name of the property. */
            property_name: string;
            /** @description Always `physical:host`. */
            resource_type: string;
            /** @description Time of the last change: UTC with microseconds. */
            updated_at?: string | null;
        };
        /** @description Scheduler hints of a lease. They can't be changed. */
        SchedulerHints: {
            /** @description Identifiers of leases of the project. The lease doesn't get hosts of these leases. */
            different_host?: string[];
            /**
             * @description Distribution of instances over hosts: `affinity`, `anti-affinity`, `soft-affinity` or
             *     `soft-anti-affinity`.
             */
            group?: string | null;
            /** @description Names of hosts. The lease gets hosts from this list. */
            host?: string[];
            /** @description Whether hosts of a reservation share a location: `same` or `different`. */
            location?: string | null;
            /** @description Requirement on each host, as JSON in a string: `[">=", "$vcpus", "16"]`. */
            query?: string | null;
            /** @description Identifiers of leases of the project. The lease gets hosts that these leases have when it is created. */
            same_host?: string[];
        };
        /** @description A series of recurring leases. */
        Series: {
            /** @description Identifier of the series. */
            id: string;
            /** @description Leases of the series, by start. */
            leases: components["schemas"]["Lease"][];
            /** @description Skipped dates, for which the lease wasn't available. */
            skipped: components["schemas"]["Skipped"][];
        };
        /** @description A series of recurring leases. */
        SeriesBody: {
            /** @description A series of recurring leases. */
            series: components["schemas"]["Series"];
        };
        /** @description The caller's identity and permissions. */
        Session: {
            /** @description Authentication method: `token`, `password`, or `none` if every caller is an administrator. */
            authentication: string;
            /**
             * Format: date-time
             * @description End of the session: UTC, RFC 3339; null if the caller doesn't use a session.
             */
            expires_at?: string | null;
            /** @description Login methods of this service: `token`, `password`, or `none`. */
            may_log_in_with: string[];
            /** @description Identifier of the project. */
            project_id: string;
            /** @description Name of the project; null if unknown. */
            project_name?: string | null;
            /**
             * @description Identifiers of the projects in which the user has a role; null if the user isn't in the service's own
             *     users file.
             */
            projects?: string[] | null;
            /** @description Roles of the user in the project, including implied roles. */
            roles: string[];
            /** @description Whether each policy rule allows the user in the project, by name of the rule in a policy file. */
            rules: {
                [key: string]: boolean;
            };
            /** @description Identifier of the user. */
            user: string;
            /** @description Name of the user; null if unknown. */
            user_name?: string | null;
        };
        /**
         * @description Credentials for the console: one of `auth`, `token`, and `user` with `password`. If the body is empty,
         *     they are read from the headers `X-Auth-Token` or `Authorization`.
         */
        SessionBegin: {
            /** @description Credentials in the format of `POST /identity/v3/auth/tokens`. */
            auth?: Record<string, never> | null;
            /** @description The user's password. */
            password?: string | null;
            /** @description Identifier of the project. Default: the user's default project. */
            project?: string | null;
            /** @description A token. */
            token?: string | null;
            /** @description A user's name. */
            user?: string | null;
        };
        /** @description The caller's identity and permissions. */
        SessionBody: {
            /** @description The caller's identity and permissions. */
            session: components["schemas"]["Session"];
        };
        /** @description A setting of the service, as of its start. */
        Setting: {
            /** @description Default value; null if there isn't one. */
            default?: string | null;
            /** @description Purpose of the setting. */
            description: string;
            /** @description Heading in the configuration reference. */
            heading: string;
            /** @description Key in the configuration file, including the section: `log.format`. */
            key: string;
            /** @description Source of the value: `flag`, `environment`, `file` or `default`. */
            source: string;
            /**
             * @description Value, as in the configuration file; null if it isn't set. URLs are reduced to scheme, host and port,
             *     since the rest can contain secrets.
             */
            value?: string | null;
        };
        /** @description The operator's settings. */
        SettingsBody: {
            /** @description All settings, in the order of the configuration reference. */
            settings: components["schemas"]["Setting"][];
        };
        /** @description A skipped date. */
        Skipped: {
            /**
             * Format: date-time
             * @description End of the skipped lease: UTC, RFC 3339.
             */
            end_date: string;
            /** @description Reason the date was skipped. */
            reason: string;
            /**
             * Format: date-time
             * @description Start of the skipped lease: UTC, RFC 3339.
             */
            start_date: string;
        };
        /** @description A time window. */
        Span: {
            /**
             * Format: date-time
             * @description End: UTC, RFC 3339.
             */
            end: string;
            /**
             * Format: date-time
             * @description Start: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description Usage of one group in one period. The fields of the group are present if the request groups by them. */
        Usage: {
            /**
             * Format: date-time
             * @description End of the period: UTC, RFC 3339.
             */
            end: string;
            /** @description Identifier of the lease; absent for instances outside of leases. */
            lease_id?: string | null;
            /** @description Name of the lease; absent if the lease no longer exists. */
            lease_name?: string | null;
            /** @description Type of the lease. */
            lease_type?: string | null;
            /**
             * Format: int64
             * @description Number of leases that started.
             */
            leases_started: number;
            /** @description Name of the hosts' free pool; absent for resources outside of pools. */
            pool?: string | null;
            /** @description Identifier of the project. */
            project_id?: string | null;
            /** @description Resources reserved by leases. */
            reserved: components["schemas"]["Reserved"];
            /**
             * Format: date-time
             * @description Start of the period: UTC, RFC 3339.
             */
            start: string;
            /** @description Resources used by instances outside of leases. */
            unleased: components["schemas"]["Used"];
            /** @description Resources used by instances in leases. */
            used: components["schemas"]["Used"];
            /** @description Identifier of the user. */
            user_id?: string | null;
        };
        /** @description Usage by period and group. */
        UsageBody: {
            /**
             * Format: date-time
             * @description End of the report, at most the current time: UTC, RFC 3339.
             */
            end: string;
            /**
             * Format: date-time
             * @description Start of the report: UTC, RFC 3339.
             */
            start: string;
            /** @description Sums by period and group. Groups without usage are omitted. */
            usage: components["schemas"]["Usage"][];
        };
        /** @description Event of a lease or an instance. */
        UsageEvent: {
            /**
             * Format: date-time
             * @description End of the lease after the event: UTC, RFC 3339.
             */
            end_date?: string | null;
            /** @description Kind of event: `lease.started`, `instance.moved`. */
            event: string;
            /**
             * @description Identifiers of the lease's hosts after the event, or of the instance's host. Empty unless the caller
             *     is an administrator.
             */
            hosts: string[];
            /** @description Identifier of the instance; null for events of leases. */
            instance_id?: string | null;
            /** @description Identifier of the lease, or of the instance's lease; null if there is no lease. */
            lease_id?: string | null;
            /** @description Type of the lease. */
            lease_type?: string | null;
            /**
             * Format: int64
             * @description Number of the event. Numbers increase over time.
             */
            number: number;
            /** @description Identifier of the project. */
            project_id: string;
            /** @description Reason for the event; null if unknown. */
            reason?: string | null;
            /**
             * Format: date-time
             * @description Start of the lease after the event: UTC, RFC 3339.
             */
            start_date?: string | null;
            /** @description Status after the event. */
            status: string;
            /**
             * Format: date-time
             * @description Time of the event: UTC, RFC 3339.
             */
            timestamp: string;
            /** @description Identifier of the user. */
            user_id: string;
        };
        /** @description Events of leases and instances. */
        UsageEventsBody: {
            /** @description Events, oldest first. */
            events: components["schemas"]["UsageEvent"][];
            /**
             * Format: int64
             * @description Number to pass as `after` in the next request.
             */
            last: number;
        };
        /** @description Resources used by instances. */
        Used: {
            /**
             * Format: double
             * @description CPUs of instances, in core-hours.
             */
            core_hours: number;
            /**
             * Format: double
             * @description Disk of instances, in GiB-hours.
             */
            disk_gib_hours: number;
            /**
             * Format: double
             * @description Memory of instances, in GiB-hours.
             */
            gib_hours: number;
            /**
             * Format: double
             * @description Running time of all instances, in instance-hours.
             */
            instance_hours: number;
            /**
             * Format: int64
             * @description Number of instances started.
             */
            instances_started: number;
        };
        /**
         * @description Content of `vendor_data2.json` in the server, below the name that Nova's configuration gives this service.
         *     Empty if the server isn't on a host of the service.
         */
        Vendordata: {
            /**
             * Format: date-time
             * @description Time by which the server is deleted.
             */
            gone_date?: string | null;
            lease?: components["schemas"]["VendordataLease"] | null;
            /** @description Whether the server is preempted for leases. */
            preemptible?: boolean | null;
            /**
             * Format: date-time
             * @description Time of the preemption notice, which asks the server to shut down; absent if no lease that needs its
             *     place is known.
             */
            shutdown_date?: string | null;
        };
        /** @description Lease of a server. */
        VendordataLease: {
            /** @description Action on the lease's guests at its end: `delete`, `keep`, `snapshot` or `migrate`. */
            end_action: string;
            /**
             * Format: date-time
             * @description End of the lease. The server is then treated as `end_action` requires.
             */
            end_date: string;
            /** @description Identifier of the lease. */
            id: string;
            /** @description Name of the lease. */
            name: string;
            /** @description Reservation that the server is part of; absent if several are possible. */
            reservation_id?: string | null;
            /**
             * Format: date-time
             * @description Start of the lease.
             */
            start_date: string;
            /** @description Status of the lease: PENDING, ACTIVE and so on. */
            status: string;
        };
        /** @description Nova's request for a server's vendor data (`DynamicJSON`). Additional fields are ignored. */
        VendordataRequest: {
            /** @description Identifier of the server, a UUID. */
            "instance-id": string;
        };
        /** @description A version of the API. */
        Version: {
            /** @description Identifier of the version. */
            id: string;
            /** @description Links to the version. */
            links: components["schemas"]["Link"][];
            /** @description Highest supported microversion. */
            max_version: string;
            /** @description Lowest supported microversion. */
            min_version: string;
            /** @description Always CURRENT. */
            status: string;
        };
        /** @description Versions of the API. */
        VersionsBody: {
            /** @description Versions of the API. */
            versions: components["schemas"]["Version"][];
        };
        /** @description Requests on the waitlist. */
        WaitlistBody: {
            /** @description Requests on the waitlist. */
            waitlist: components["schemas"]["WaitlistEntry"][];
        };
        /** @description A request on the waitlist. */
        WaitlistEntry: {
            /**
             * Format: date-time
             * @description Earliest start of a request that can start at any time within a window; null for fixed dates.
             */
            earliest_start_date?: string | null;
            /**
             * Format: date-time
             * @description Latest start. The request is dropped if it hasn't started by then.
             */
            expires_at: string;
            /** @description Identifier of the request, and of the lease that it becomes. */
            id: string;
            /**
             * Format: date-time
             * @description Latest end of a request that can start at any time within a window; null for fixed dates.
             */
            latest_end_date?: string | null;
            /** @description The requested lease. */
            lease: components["schemas"]["Lease"];
            /**
             * Format: int64
             * @description Position on the waitlist, counted from 1. Requests of other projects count as well.
             */
            place: number;
        };
        /** @description A request on the waitlist. */
        WaitlistEntryBody: {
            /** @description A request on the waitlist. */
            waitlist_entry: components["schemas"]["WaitlistEntry"];
        };
        /**
         * @description Question: how would changes affect the cluster? Equivalent to `allot whatif`. Requires at least one
         *     change.
         *
         *     Exactly one of `cluster`, `fleet`, `text` and `rapi` selects the cluster.
         */
        WhatifQuestion: {
            /** @description Instances to create, each as `COUNT,DISK,RAM,CPUS[,TEMPLATE]`. */
            add_instances?: string[];
            /** @description Empty nodes to add, each as `COUNT,DISK,RAM,CPUS[,SPINDLES][@GROUP]`. */
            add_nodes?: string[];
            /** @description Whether to place instances only if every node can still be emptied. Default: true. */
            capacity_checks?: boolean | null;
            /** @description Name of a cluster, as configured by the operator. */
            cluster?: string | null;
            /** @description Disk template of the instances that capacity is counted for. */
            disk_template?: string | null;
            /** @description True selects the service's own fleet: its hosts as nodes, and their guests as instances. */
            fleet?: boolean | null;
            /** @description Whether to check redundancy in each group separately. Default: false. */
            independent_groups?: boolean | null;
            /**
             * Format: int32
             * @description Maximum number of instances of a size to count capacity for.
             */
            limit?: number | null;
            /** @description Names of nodes that fail. */
            lose?: string[];
            /**
             * Format: double
             * @description Maximum number of virtual CPUs per physical CPU. Default: the policy's limit.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Minimum share of each node's disk that stays free, from 0 to 1.
             */
            min_disk?: number | null;
            /**
             * @description Kind of free memory that decides which nodes fail N+1 before any changes: `recorded` or
             *     `reported`.
             */
            n1_initial?: string | null;
            /** @description Names of nodes to treat as offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description Whether to balance the groups after the changes. Default: false. */
            rebalance?: boolean | null;
            /** @description Names of instances to remove. */
            remove_instances?: string[];
            /** @description Instances to resize, each as `INSTANCE:mem=SIZE,vcpus=N,disk=SIZE`. */
            resize?: string[];
            /** @description Description of a cluster in Ganeti's text format, as written by `hscan` and `hbal -S`. */
            text?: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
