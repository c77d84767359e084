// Written by scripts/schema.mjs from the service's /openapi.json. Do not change it by hand.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A reservation that has something of a host. */
        AllocatedReservation: {
            /** @description Until when. */
            end_date: string;
            /** @description The reservation's identifier. */
            id: string;
            /** @description The lease that it belongs to. */
            lease_id: string;
            /** @description From when: UTC with microseconds. */
            start_date: string;
        };
        /** @description What is reserved of a host. */
        Allocation: {
            /** @description The reservations, by start. */
            reservations: components["schemas"]["AllocatedReservation"][];
            /** @description The host's identifier. */
            resource_id: string;
        };
        /** @description What is reserved of a host. */
        AllocationBody: {
            /** @description What is reserved of a host. */
            allocation: components["schemas"]["Allocation"];
        };
        /** @description What is reserved of each host, by its identifier. */
        AllocationsBody: {
            /** @description What is reserved of each host, by its identifier. */
            allocations: components["schemas"]["Allocation"][];
            /** @description Where there are more, if a limit was asked for. */
            allocations_links?: components["schemas"]["Link"][];
        };
        /** @description Who did what. */
        AuditBody: {
            /** @description Changes, newest first. */
            audit: components["schemas"]["AuditEntry"][];
            /** @description Where there are more. */
            audit_links?: components["schemas"]["Link"][];
        };
        /** @description A change that somebody made. */
        AuditEntry: {
            /** @description What was done: `lease.create`, `host.update`. */
            action: string;
            /**
             * Format: int64
             * @description Its number: later ones have higher numbers.
             */
            number: number;
            /** @description To what, by its identifier. */
            object_id: string;
            /** @description For which project. */
            project_id: string;
            /** @description In which request: what the answer had in `X-OpenStack-Request-ID`. */
            request_id: string;
            /**
             * Format: date-time
             * @description When it was made: UTC, RFC 3339.
             */
            timestamp: string;
            /** @description Who made it. */
            user_id: string;
        };
        /** @description What is wrong with credentials. */
        AuthError: {
            /**
             * Format: int32
             * @description The HTTP status.
             */
            code: number;
            /** @description What is wrong. */
            message: string;
            /** @description Its name. */
            title: string;
        };
        /** @description The answer to a request without valid credentials, as Keystone's middleware gives it. */
        AuthErrorBody: {
            /** @description What is wrong. */
            error: components["schemas"]["AuthError"];
            /** @description With what one can log in to the console, where that is asked: `token`, `password`. */
            login?: string[];
        };
        /** @description How much is free when. */
        Availability: {
            /**
             * @description The earliest times at which as much as was asked for could be reserved for the length that was given, none of which
             *     overlaps another; absent unless a length was given.
             */
            best?: components["schemas"]["Span"][] | null;
            /**
             * Format: date-time
             * @description Until when.
             */
            end: string;
            /** @description The type of what was asked about: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`. */
            resource_type: string;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
            /** @description How much of that is free, in order and without gaps. */
            steps: components["schemas"]["FreeStep"][];
            /**
             * Format: int64
             * @description How much there would be if nothing were reserved: hosts, instances of the size, or addresses.
             */
            total: number;
        };
        /** @description How much is free when. */
        AvailabilityBody: {
            /** @description How much is free when. */
            availability: components["schemas"]["Availability"];
        };
        /**
         * @description Which moves balance a group, as `allot hbal` has them.
         *
         *     One of `cluster`, `fleet`, `text` and `rapi` says about which cluster.
         */
        BalanceQuestion: {
            /** @description The name that the operator has given a cluster. */
            cluster?: string | null;
            /** @description Whether disks may be copied; they may if it is not said. */
            disk_moves?: boolean | null;
            /** @description Only move instances off offline nodes. */
            evacuate?: boolean | null;
            /** @description True: the hosts of the service's own fleet as nodes, and what runs there as instances. */
            fleet?: boolean | null;
            /** @description The group; it need not be said where only one has nodes. */
            group?: string | null;
            /** @description Do not insist on limits that are exceeded already. */
            ignore_soft_errors?: boolean | null;
            /** @description Whether instances may be migrated; they may if it is not said. */
            instance_moves?: boolean | null;
            /**
             * Format: double
             * @description Allow so many virtual CPUs per physical one, instead of what the policy allows.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Keep this share of each node's disk free, from 0 to 1.
             */
            min_disk?: number | null;
            /**
             * Format: int32
             * @description At most so many moves.
             */
            moves?: number | null;
            /** @description Which nodes fail N+1 at first: those short of `recorded` or of `reported` free memory. */
            n1_initial?: string | null;
            /** @description Nodes that are to be taken for offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description A cluster in Ganeti's text format, as `hscan` and `hbal -S` write it. */
            text?: string | null;
        };
        /** @description What leases cost. */
        BillingBody: {
            /** @description The lines. */
            billing: components["schemas"]["BillingLine"][];
            /** @description What amounts are in, as the operator calls it; empty if it has no name. */
            currency: string;
            /**
             * Format: date-time
             * @description Until when; not later than now.
             */
            end: string;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
            /** @description The sum of their amounts: a decimal number. */
            total: string;
        };
        /** @description A line of a bill. */
        BillingLine: {
            /** @description What the line amounts to: a decimal number, rounded to six decimals once. */
            amount: string;
            /**
             * Format: date-time
             * @description Until when.
             */
            end: string;
            /** @description For what: lease, host, room, room-core, room-memory, address, instance, preemptible-core or preemptible-memory. */
            item: string;
            /** @description The lease; absent for preemptible instances, which are in none. */
            lease_id?: string | null;
            /** @description The project. */
            project_id: string;
            /** @description How much of it: a decimal number, rounded to six decimals. */
            quantity: string;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
            /** @description What that is measured in: `host-hour`. */
            unit: string;
            /** @description What a unit costs: a decimal number. */
            unit_price: string;
            /** @description The user. */
            user_id: string;
        };
        /** @description A part of the calendar: hosts, and what is on them within a window. */
        Calendar: {
            /**
             * Format: int64
             * @description How long the spans of `buckets` are, in minutes; null where bars are shown.
             */
            bucket_minutes?: number | null;
            /**
             * Format: date-time
             * @description Until when.
             */
            end: string;
            /** @description Hosts, by group if they are grouped, and by identifier. */
            hosts: components["schemas"]["CalendarHost"][];
            /** @description The leases that bars refer to by position: those that the caller may know. */
            leases: components["schemas"]["CalendarLease"][];
            /** @description The `marker` that the rest is asked for with; null if this is the last part. */
            next?: string | null;
            /**
             * Format: date-time
             * @description The service's time.
             */
            now: string;
            /** @description As of which state of the service: another text after every change. */
            revision: string;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339, as all times here.
             */
            start: string;
        };
        /** @description A time during which something is on a host. There are many of them, so that times become text only as they are sent. */
        CalendarBar: {
            /**
             * Format: date-time
             * @description Until when; null if there is no end. Of a preemptible instance, when it is asked to leave.
             */
            end?: string | null;
            /**
             * Format: int64
             * @description How many instances there is room for; null of a whole host, or if the caller may not know.
             */
            instances?: number | null;
            /** @description `lease`, `offer`, `maintenance`, `instance` (of no lease), `preemptible`, or `other`: what the caller may not know. */
            kind: string;
            /** @description The position of the lease in `leases`; null if the caller may not know it, or there is none. */
            lease?: number | null;
            /**
             * Format: date-time
             * @description From when, also if that is before the start of the calendar.
             */
            start: string;
            /** @description Whether it is about the whole host. */
            whole: boolean;
        };
        /** @description Who has which hosts when. */
        CalendarBody: {
            /** @description Who has which hosts when. */
            calendar: components["schemas"]["Calendar"];
        };
        /** @description Word of a change, as the stream of changes sends it. */
        CalendarChange: {
            /** @description The same as JSON: `{"revision": "..."}`. */
            data: string;
            /** @description `revision`. */
            event: string;
            /** @description The calendar's revision, to go on from with `Last-Event-ID`. */
            id: string;
        };
        /** @description A host in the calendar. */
        CalendarHost: {
            /** @description What is on it, by start; absent where buckets are asked for. */
            bars?: components["schemas"]["CalendarBar"][] | null;
            /**
             * @description How much of it is reserved on average in each span from `start` on, in thousandths, rounded up; the last span ends
             *     at `end`. Absent unless buckets are asked for.
             */
            buckets?: number[] | null;
            /** @description The value that it is grouped by; null if it has none, or hosts are not grouped. */
            group?: string | null;
            /** @description Its identifier. */
            id: string;
            /** @description Its name; null where the caller may not know it. */
            name?: string | null;
            /** @description The name of its pool; null where the caller may not know it. */
            pool?: string | null;
            /** @description `on` or `off`; null where the caller may not know. */
            power?: string | null;
            /** @description How it is at present: `open`, `closed`, `failed` or `maintenance`. */
            status: string;
        };
        /** @description A lease in the calendar. */
        CalendarLease: {
            /**
             * Format: date-time
             * @description Until when.
             */
            end_date: string;
            /** @description Its identifier. */
            id: string;
            /** @description Whether it is one of the caller's project. */
            mine: boolean;
            /** @description Its name. */
            name: string;
            /** @description The project it belongs to. */
            project_id: string;
            /**
             * Format: date-time
             * @description From when.
             */
            start_date: string;
            /** @description Its status, as of a lease. */
            status: string;
        };
        /** @description Refused requests, by kind. */
        CapacityBody: {
            /** @description Kinds of requests, those with the most refusals first. */
            capacity: components["schemas"]["RefusedRequests"][];
            /**
             * Format: date-time
             * @description End of the period; not later than now.
             */
            end: string;
            /**
             * Format: date-time
             * @description Start of the period: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description Names of clusters. */
        ClustersBody: {
            /** @description The names, in order. */
            clusters: string[];
        };
        /** @description What something costs. */
        Cost: {
            /** @description A decimal number, rounded to six decimals. */
            amount: string;
            /** @description The currency, as the operator has it. */
            currency: string;
        };
        /** @description When a preemptible instance is preempted. */
        Departure: {
            /**
             * Format: date-time
             * @description When it is asked to shut down: UTC to the second.
             */
            asked_at: string;
            /**
             * Format: date-time
             * @description When it is deleted if it is still there.
             */
            gone_by: string;
            /** @description Whether it is to be moved to another host before that, so that it need not leave. */
            moves: boolean;
        };
        /**
         * @description Whether nodes can be emptied, as `allot drain` has it.
         *
         *     One of `cluster`, `fleet`, `text` and `rapi` says about which cluster.
         */
        DrainQuestion: {
            /** @description The name that the operator has given a cluster. */
            cluster?: string | null;
            /** @description Whether disks may be copied; they may if it is not said. */
            disk_moves?: boolean | null;
            /** @description True: the hosts of the service's own fleet as nodes, and what runs there as instances. */
            fleet?: boolean | null;
            /** @description Accept moves that violate policies, exclusion tags or N+1 where they are violated already. */
            ignore_soft_errors?: boolean | null;
            /**
             * Format: double
             * @description Allow so many virtual CPUs per physical one, instead of what the policy allows.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Keep this share of each node's disk free, from 0 to 1.
             */
            min_disk?: number | null;
            /** @description Which nodes fail N+1 at first: those short of `recorded` or of `reported` free memory. */
            n1_initial?: string | null;
            /** @description The nodes. At least one must be named. */
            nodes?: string[];
            /** @description Nodes that are to be taken for offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description The nodes will only be restarted. */
            reboot?: boolean | null;
            /** @description A cluster in Ganeti's text format, as `hscan` and `hbal -S` write it. */
            text?: string | null;
        };
        /** @description All differences between what is stored and what the fleet shows. */
        DriftBody: {
            /** @description All differences between what is stored and what the fleet shows. */
            drift: components["schemas"]["DriftEntry"][];
        };
        /** @description A difference. */
        DriftEntry: {
            /** @description The machine that it is about, if it is about one. */
            host_id?: string | null;
            /**
             * @description What kind: `wrong_clock`, `foreign_fleet`, `machine_gone`, `not_taken_on`, `stray`,
             *     `foreign_guest`, `changed`, `overruled`, `cloud_differs`, `ownerless`, `step_fails`.
             */
            kind: string;
            /** @description What is the matter, and what to do. */
            message: string;
            /** @description Whether a repair can do something about it. */
            repairable: boolean;
        };
        /** @description The power of a host. */
        EnergyHost: {
            /**
             * Format: int64
             * @description How long it is expected to boot.
             */
            boot_seconds: number;
            /**
             * Format: double
             * @description The same when it works.
             */
            busy_watts?: number | null;
            /** @description Which host. */
            host_id: string;
            /** @description Its name. */
            hypervisor_hostname: string;
            /**
             * Format: double
             * @description What it draws when it is on and idle, if somebody has said.
             */
            idle_watts?: number | null;
            /** @description Whether the operator lets it be switched off. */
            may_be_off: boolean;
            /** @description How often that was measured. */
            measured_boots: number;
            /**
             * Format: double
             * @description The same when it is off.
             */
            off_watts: number;
            /** @description The name of its free pool. */
            pool: string;
            /** @description `on`, `shutting_down`, `off`, `booting` or `failed`. */
            power: string;
            /**
             * Format: date-time
             * @description Since when, unless it is on.
             */
            since?: string | null;
            /** @description How often it was switched off within the last day. */
            switched_off_lately: number;
        };
        /** @description The power of hosts. */
        EnergyHostsBody: {
            /** @description By identifier. */
            hosts: components["schemas"]["EnergyHost"][];
        };
        /** @description How many hosts have to be on. */
        EnergyNeed: {
            /** @description How many. */
            hosts: number;
            /**
             * Format: date-time
             * @description From when, until the next: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description What may be off when. */
        EnergyPlanBody: {
            /**
             * Format: date-time
             * @description How far ahead it is planned.
             */
            end: string;
            /** @description Whether power is saved: `off`, `dry_run` or `on`. */
            mode: string;
            /** @description Pool by pool. */
            pools: components["schemas"]["EnergyPool"][];
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description What is planned for a free pool. */
        EnergyPool: {
            /** @description How many hosts are in it. */
            hosts: number;
            /** @description How many have to be on at the busiest instant. */
            hosts_needed: number;
            /** @description How many have to be on, over time. */
            needed: components["schemas"]["EnergyNeed"][];
            /** @description Which may be off when. */
            off: components["schemas"]["EnergyRest"][];
            /** @description Its name. */
            pool: string;
            /** @description Its identifier; nothing of the pool that is always there. */
            pool_id?: string | null;
            /**
             * Format: double
             * @description What that saves, compared with idle hosts, as far as it is known what they draw.
             */
            saved_kwh: number;
        };
        /** @description What was saved and used in a free pool. */
        EnergyPoolReport: {
            /**
             * Format: int64
             * @description How often one did not come up in time then.
             */
            boots_failed: number;
            /**
             * Format: double
             * @description Hosts that were leased or carried guests times hours.
             */
            busy_host_hours: number;
            /**
             * Format: double
             * @description What they drew then.
             */
            busy_kwh: number;
            /**
             * Format: int64
             * @description How many hosts are not in these sums, since nobody has said what they draw when they are idle.
             */
            hosts_without_watts: number;
            /**
             * Format: double
             * @description Hosts that were on beside that times hours.
             */
            idle_host_hours: number;
            /**
             * Format: double
             * @description What they drew then.
             */
            idle_kwh: number;
            /**
             * Format: int64
             * @description The longest boot, seconds.
             */
            longest_boot_seconds?: number | null;
            /**
             * Format: double
             * @description Hosts that were off times hours.
             */
            off_host_hours: number;
            /** @description Its name; nothing if it is gone. */
            pool?: string | null;
            /** @description Its identifier; nothing of the pool that is always there. */
            pool_id?: string | null;
            /**
             * Format: double
             * @description What that saved, compared with idle hosts.
             */
            saved_kwh: number;
            /**
             * Format: int64
             * @description How often a host was switched off.
             */
            switched_off: number;
            /**
             * Format: int64
             * @description How often one was switched on again.
             */
            switched_on: number;
            /**
             * Format: double
             * @description What hosts used in all: at work, idle and off.
             */
            total_kwh: number;
            /**
             * Format: double
             * @description What these hosts drew while they were off.
             */
            used_kwh: number;
        };
        /** @description What was saved. */
        EnergyReportBody: {
            /**
             * Format: date-time
             * @description Until when; not later than now.
             */
            end: string;
            /** @description Pool by pool; none of those where there were no hosts. */
            pools: components["schemas"]["EnergyPoolReport"][];
            /**
             * Format: double
             * @description What all pools saved.
             */
            saved_kwh: number;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
            /**
             * Format: double
             * @description What all hosts used: at work, idle and off.
             */
            total_kwh: number;
            /**
             * Format: double
             * @description What hosts drew while they were off.
             */
            used_kwh: number;
        };
        /** @description A time that a host may be off for. */
        EnergyRest: {
            /** @description Which host. */
            host_id: string;
            /** @description Its name. */
            hypervisor_hostname: string;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            off_from: string;
            /**
             * Format: date-time
             * @description When it is to be switched on again; nothing if that is beyond the horizon.
             */
            on_by?: string | null;
        };
        /** @description The answer to a request that has no effect. */
        ErrorBody: {
            /**
             * Format: int32
             * @description The HTTP status.
             */
            error_code: number;
            /** @description What is wrong. */
            error_message: string;
            /**
             * Format: int32
             * @description The HTTP status again, as in Blazar.
             */
            error_name: number;
            /** @description What would help: which filter ruled out how many hosts, say. Not in Blazar. */
            hint?: string | null;
            /** @description What could be had instead. Not in Blazar. */
            offers?: components["schemas"]["Offer"][];
        };
        /** @description An event of a lease. */
        Event: {
            /** @description When it was made. */
            created_at: string;
            /** @description `start_lease`, `before_end_lease`, `end_lease`, or `timeout` of a lease that must start in time. */
            event_type: string;
            /** @description Its identifier, a UUID. */
            id: string;
            /** @description The lease it belongs to. */
            lease_id: string;
            /** @description UNDONE, `IN_PROGRESS`, DONE or ERROR. */
            status: string;
            /** @description When it is due. */
            time: string;
            /** @description When it was last changed. */
            updated_at?: string | null;
        };
        /**
         * @description How many instances of a shape fit, as `allot fit` has it.
         *
         *     One of `cluster`, `fleet`, `text` and `rapi` says about which cluster.
         */
        FitQuestion: {
            /** @description Whether instances are placed only where every node can still be emptied; so it is if it is not said. */
            capacity_checks?: boolean | null;
            /** @description The name that the operator has given a cluster. */
            cluster?: string | null;
            /**
             * Format: int32
             * @description Whether so many fit.
             */
            count?: number | null;
            /** @description Their disk template. */
            disk_template?: string | null;
            /** @description True: the hosts of the service's own fleet as nodes, and what runs there as instances. */
            fleet?: boolean | null;
            /** @description Only in this group. */
            group?: string | null;
            /** @description Judge redundancy group by group. */
            independent_groups?: boolean | null;
            /**
             * Format: int32
             * @description Count at most so many.
             */
            limit?: number | null;
            /**
             * Format: double
             * @description Allow so many virtual CPUs per physical one, instead of what the policy allows.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Keep this share of each node's disk free, from 0 to 1.
             */
            min_disk?: number | null;
            /** @description Which nodes fail N+1 at first: those short of `recorded` or of `reported` free memory. */
            n1_initial?: string | null;
            /** @description Nodes that are to be taken for offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description The shape of an instance: `DISK,RAM,CPUS[,SPINDLES]`. It must be given. */
            shape?: string;
            /** @description A cluster in Ganeti's text format, as `hscan` and `hbal -S` write it. */
            text?: string | null;
        };
        /** @description A flavor. */
        Flavor: {
            /**
             * Format: int32
             * @description Second disk, GiB.
             */
            "OS-FLV-EXT-DATA:ephemeral": number;
            /**
             * Format: int32
             * @description Root disk, GiB.
             */
            disk: number;
            /** @description What it asks of hosts beside its size. */
            extra_specs: {
                [key: string]: string;
            };
            /** @description Its identifier. */
            id: string;
            /** @description Its name. */
            name: string;
            /** @description Whether every project may use it. */
            "os-flavor-access:is_public": boolean;
            /**
             * Format: int32
             * @description Memory, MiB.
             */
            ram: number;
            /**
             * Format: float
             * @description Always 1.
             */
            rxtx_factor: number;
            /**
             * Format: int32
             * @description Swap, MiB.
             */
            swap: number;
            /**
             * Format: int32
             * @description Virtual CPUs.
             */
            vcpus: number;
        };
        /** @description How many instances of a flavor there is room for when, as the clients of Chameleon's Blazar read it. */
        FlavorAvailability: {
            /** @description In order and without gaps. */
            availability: components["schemas"]["FlavorStep"][];
            /** @description The flavor. */
            flavor_id: string;
        };
        /** @description A flavor. */
        FlavorBody: {
            /** @description A flavor. */
            flavor: components["schemas"]["Flavor"];
        };
        /** @description A flavor that is to be entered, with Nova's names. */
        FlavorCreate: {
            /**
             * Format: int32
             * @description Second disk, GiB.
             */
            "OS-FLV-EXT-DATA:ephemeral"?: number | null;
            /**
             * Format: int32
             * @description Root disk, GiB.
             */
            disk: number;
            /** @description What it asks of hosts beside its size. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Its identifier; made up if absent. */
            id?: string | null;
            /** @description Its name. */
            name: string;
            /** @description Whether every project may use it; true if absent. */
            "os-flavor-access:is_public"?: boolean | null;
            /**
             * Format: int32
             * @description Memory, MiB.
             */
            ram: number;
            /**
             * Format: float
             * @description Passed over; answers have it.
             */
            rxtx_factor?: number | null;
            /**
             * Format: int32
             * @description Swap, MiB.
             */
            swap?: number | null;
            /**
             * Format: int32
             * @description Virtual CPUs.
             */
            vcpus: number;
        };
        /** @description How many instances of flavors there is room for when. */
        FlavorInstancesBody: {
            /** @description One for each flavor. */
            flavor_instances: components["schemas"]["FlavorAvailability"][];
        };
        /** @description A time during which there is room for the same number. */
        FlavorStep: {
            /**
             * Format: int64
             * @description How many instances there is room for.
             */
            available: number;
            /** @description Until when. */
            end: string;
            /** @description From when: UTC, `YYYY-MM-DD HH:MM`, as the clients read it. */
            start: string;
            /**
             * Format: int64
             * @description How many there would be room for if nothing were reserved.
             */
            total: number;
        };
        /** @description All flavors. */
        FlavorsBody: {
            /** @description All flavors. */
            flavors: components["schemas"]["Flavor"][];
        };
        /** @description An address that may be leased. */
        FloatingIp: {
            /** @description When it was entered: UTC to the second. */
            created_at: string;
            /** @description The address. */
            floating_ip_address: string;
            /** @description The network. */
            floating_network_id: string;
            /** @description Its identifier, a UUID. */
            id: string;
            /** @description Whether it may be reserved. */
            reservable: boolean;
            /** @description The subnet that it lies in. */
            subnet_id: string;
            /** @description Always null: it is never changed. */
            updated_at?: string | null;
        };
        /** @description A floating IP. */
        FloatingIpBody: {
            /** @description A floating IP. */
            floatingip: components["schemas"]["FloatingIp"];
        };
        /** @description An address that is to be entered. */
        FloatingIpCreate: {
            /** @description The address. */
            floating_ip_address: string;
            /** @description The network. */
            floating_network_id: string;
        };
        /** @description All floating IPs, by identifier. */
        FloatingIpsBody: {
            /** @description All floating IPs, by identifier. */
            floatingips: components["schemas"]["FloatingIp"][];
            /** @description Where there are more, if a limit was asked for. */
            floatingips_links?: components["schemas"]["Link"][];
        };
        /** @description A free pool. */
        FreePool: {
            /**
             * Format: date-time
             * @description When it was made: UTC to the second; null for the one that is always there.
             */
            created_at?: string | null;
            /** @description What becomes of guests at the end of leases that do not say; null if it is what the service does by default. */
            end_action?: string | null;
            /** @description What all its hosts are like, unless they say otherwise themselves. */
            extra_specs: {
                [key: string]: string;
            };
            /** @description How many hosts are in it, leased or not. */
            hosts: number;
            /** @description Its identifier. */
            id: string;
            /** @description Its name. */
            name: string;
            /**
             * Format: date-time
             * @description When it was last changed.
             */
            updated_at?: string | null;
        };
        /** @description A free pool. */
        FreePoolBody: {
            /** @description A free pool. */
            freepool: components["schemas"]["FreePool"];
        };
        /** @description What is to be different of a free pool. */
        FreePoolChange: {
            /** @description What becomes of guests at the end of leases that do not say; null for what the service does by default. */
            end_action?: string | null;
            /** @description What its hosts are like from now on: all of it. */
            extra_specs?: {
                [key: string]: string;
            } | null;
            /** @description Another name. */
            name?: string | null;
        };
        /** @description A free pool that is to be made. */
        FreePoolCreate: {
            /** @description What becomes of guests at the end of leases that do not say: `delete`, `keep`, `snapshot` or `migrate`. */
            end_action?: string | null;
            /** @description What its hosts are like, by the names of capabilities. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Its name; no other has it. */
            name: string;
        };
        /** @description All free pools. */
        FreePoolsBody: {
            /** @description All free pools. */
            freepools: components["schemas"]["FreePool"][];
        };
        /** @description A time during which the same number is free. There are many of them, so that times become text only as they are sent. */
        FreeStep: {
            /**
             * Format: date-time
             * @description Until when.
             */
            end: string;
            /**
             * Format: int64
             * @description How many are free.
             */
            free: number;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description A host. Extra capabilities stand beside these fields, with text as their values. */
        Host: {
            /** @description Empty if unknown. */
            availability_zone: string;
            /** @description The CPU's description: JSON in a string. */
            cpu_info: string;
            /** @description When it was entered: UTC to the second. */
            created_at: string;
            /** @description Its name. */
            hypervisor_hostname: string;
            /** @description The hypervisor: `QEMU`. */
            hypervisor_type: string;
            /**
             * Format: int64
             * @description Its version as a number.
             */
            hypervisor_version: number;
            /** @description Its identifier: decimal digits, because clients take anything else for a name. */
            id: string;
            /**
             * Format: int32
             * @description Disk, GiB.
             */
            local_gb: number;
            /**
             * Format: int32
             * @description Memory, MiB.
             */
            memory_mb: number;
            /** @description Whether it may be reserved: the operator lets it, and it works. */
            reservable: boolean;
            /** @description The name of its compute service. */
            service_name: string;
            /** @description Always null. */
            status?: string | null;
            /** @description Always null: there are no trusts. */
            trust_id?: string | null;
            /** @description When it was last changed. */
            updated_at?: string | null;
            /**
             * Format: int32
             * @description Virtual CPUs.
             */
            vcpus: number;
        } & {
            [key: string]: string;
        };
        /** @description Whether a host may have an instance. */
        HostAnswer: {
            /** @description Whether it may. */
            allowed: boolean;
            /** @description The host's name. */
            host: string;
            /** @description Why not. */
            reason?: string | null;
            /**
             * Format: date-time
             * @description Until when, if a lease is known that bounds that: UTC to the second.
             */
            until?: string | null;
        };
        /** @description A host. */
        HostBody: {
            /** @description A host. */
            host: components["schemas"]["Host"];
        };
        /** @description What is to be different of a host. */
        HostChange: {
            /**
             * @description Whether new leases may have it. Where it is closed, leases that have not started get other hosts, if there are
             *     any, and running ones go on.
             */
            reservable?: boolean | null;
        } & {
            [key: string]: string | null;
        };
        /** @description A host that is to be entered: by `name` or by `id`. All other fields are extra capabilities. */
        HostCreate: {
            /** @description Its identifier. */
            id?: string | null;
            /** @description Its name. */
            name?: string | null;
        } & {
            [key: string]: string;
        };
        /** @description Which hosts may have an instance. */
        HostsAnswer: {
            /** @description The hosts in question, in that order. */
            hosts: components["schemas"]["HostAnswer"][];
            /** @description What kind of instance it would be: `reserved`, `regular` or `preemptible`. */
            kind: string;
        };
        /** @description All hosts, by identifier. */
        HostsBody: {
            /** @description All hosts, by identifier. */
            hosts: components["schemas"]["Host"][];
            /** @description Where there are more, if a limit was asked for. */
            hosts_links?: components["schemas"]["Link"][];
        };
        /** @description A question which hosts may have an instance. */
        HostsQuestion: {
            /**
             * Format: int32
             * @description Disk, GiB.
             */
            disk_gb?: number | null;
            /** @description Properties of its flavor: `blazar:preemptible` may say that it is preempted for leases. */
            flavor_properties?: {
                [key: string]: string;
            };
            /** @description The names of the hosts in question, others than the service's included; all of the service's if absent. */
            hosts?: string[] | null;
            /** @description The same of its image. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: uuid
             * @description The instance, if it is there already: where this service moves it, it may go.
             */
            instance_id?: string | null;
            /**
             * Format: int32
             * @description Memory, MiB.
             */
            memory_mb?: number | null;
            /** @description Whose instance it is to be; the caller's project's if absent. */
            project_id?: string | null;
            scheduler_hints?: components["schemas"]["LeaseHints"] | null;
            /**
             * Format: int32
             * @description Virtual CPUs. Without a size it is not asked whether hosts have room.
             */
            vcpus?: number | null;
            /** @description The same of its volumes. */
            volume_properties?: {
                [key: string]: string;
            }[];
        };
        /** @description An instance. */
        Instance: {
            /** @description Whether it is on a host of a lease that does not use it, and leaves as soon as that does. */
            backfills: boolean;
            /**
             * Format: date-time
             * @description When it was asked for: UTC to the second.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When a preemptible instance that runs has run for as long as it may, and is gone: UTC to the second. Null if that is
             *     not limited, and of others.
             */
            deadline?: string | null;
            departure?: components["schemas"]["Departure"] | null;
            /**
             * Format: int32
             * @description Disk, GiB.
             */
            disk_gb: number;
            /** @description What becomes of it once it was preempted, if it is of a class: `delete`, or `stop`, and then it is kept. */
            end_state?: string | null;
            /** @description The name of its host; null to callers who may not see hosts, unless it is the lease's. */
            host?: string | null;
            /** @description Its identifier, a UUID. */
            id: string;
            /** @description `reserved` in a lease, `regular`, or `preemptible`: it is preempted for the next lease of its host. */
            kind: string;
            /**
             * Format: date-time
             * @description Since when it runs: UTC to the second. Null as long as it does not.
             */
            launched_at?: string | null;
            /** @description The lease that it is part of; null if of none, or of none any more. */
            lease_id?: string | null;
            /**
             * Format: int32
             * @description Memory, MiB.
             */
            memory_mb: number;
            /** @description What its owner calls it. */
            name: string;
            /**
             * Format: int64
             * @description How many seconds it has between being asked to shut down and being deleted, if it is of a class.
             */
            notice_seconds?: number | null;
            /** @description The class of one that is preemptible, if it is of any. */
            preemptible_class?: string | null;
            /** @description The project that it belongs to. */
            project_id: string;
            /** @description Whether another one is started in its place once it was preempted. */
            requeue: boolean;
            /** @description The reservation of that lease. */
            reservation_id?: string | null;
            /** @description The instance that was kept and that this one goes on with, until it runs. */
            resumes?: string | null;
            /**
             * Format: date-time
             * @description Until when a preemptible instance may stay where it is, unless its host fails or a lease is made that starts
             *     sooner: UTC to the second. Null if no lease of its host is known and it may run for any time, and of others; now if it
             *     `backfills`.
             */
            safe_until?: string | null;
            /**
             * @description `BUILD`, `ACTIVE`, `DELETING` or `ERROR`; `QUEUED` if it is started as soon as there is room,
             *     `SHELVED_OFFLOADED` if it was preempted and is kept.
             */
            status: string;
            /** @description Why it could not be started. */
            status_reason?: string | null;
            /**
             * Format: date-time
             * @description When it last changed.
             */
            updated_at?: string | null;
            /** @description The user who asked for it. */
            user_id: string;
            /**
             * Format: int32
             * @description Virtual CPUs.
             */
            vcpus: number;
        };
        /** @description An instance. */
        InstanceBody: {
            /** @description An instance. */
            instance: components["schemas"]["Instance"];
        };
        /** @description An instance that is to be started. */
        InstanceCreate: {
            /**
             * Format: int32
             * @description Disk, GiB.
             */
            disk_gb?: number | null;
            /** @description Properties of its flavor: `blazar:preemptible` may say that it is preempted for leases. */
            flavor_properties?: {
                [key: string]: string;
            };
            /** @description The same of its image. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Memory, MiB.
             */
            memory_mb?: number | null;
            /** @description Its name. */
            name: string;
            /** @description Whether another one is started in its place, as soon as there is room, once it was preempted for a lease. */
            requeue?: boolean;
            scheduler_hints?: components["schemas"]["LeaseHints"] | null;
            /**
             * Format: int32
             * @description Virtual CPUs. The size may be left out where the reservation gives one.
             */
            vcpus?: number | null;
            /** @description The same of its volumes. */
            volume_properties?: {
                [key: string]: string;
            }[];
        };
        /** @description Room for instances. */
        Instances: {
            /** @description true: on one host; false: on distinct hosts; null: anywhere. */
            affinity?: boolean | null;
            /**
             * Format: int32
             * @description The number of the host aggregate; null until there is one, and where the fleet is no cloud that has aggregates.
             */
            aggregate_id?: number | null;
            /**
             * Format: int32
             * @description How many.
             */
            amount: number;
            /**
             * Format: int64
             * @description Disk of each, GiB.
             */
            disk_gb: number;
            /**
             * Format: int32
             * @description Second disk of each, GiB, where it was asked for beside a size. Not in Blazar, as `extra_specs`.
             */
            ephemeral_gb?: number | null;
            /** @description Extra specs of their flavor, where they were asked for beside a size. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description The flavor to start instances with: the identifier of the reservation. */
            flavor_id: string;
            /**
             * Format: int64
             * @description Memory of each, MiB.
             */
            memory_mb: number;
            /** @description What hosts must be like; of a flavor reservation, the flavor as JSON. */
            resource_properties?: string | null;
            /** @description The server group to start instances in, if there is an affinity; null until there is one. */
            server_group_id?: string | null;
            /** @description What may fail without there being room for fewer. */
            survives?: string | null;
            /**
             * Format: int64
             * @description Virtual CPUs of each.
             */
            vcpus: number;
        };
        /** @description Instances, in the order of their creation. */
        InstancesBody: {
            /** @description Instances, in the order of their creation. */
            instances: components["schemas"]["Instance"][];
            /** @description Where there are more, if a limit was asked for. */
            instances_links?: components["schemas"]["Link"][];
        };
        /** @description A lease. */
        Lease: {
            /** @description Whether preemptible instances may run on whole hosts of it as long as it does not use them. Not in Blazar. */
            backfill?: boolean;
            cost?: components["schemas"]["Cost"] | null;
            /** @description When it was made: UTC to the second, `2030-01-02 10:00:00`. */
            created_at: string;
            /** @description Whether it has less than it was promised. */
            degraded: boolean;
            /** @description What becomes of guests at the end: delete, keep, snapshot or migrate. Not in Blazar. */
            end_action: string;
            /** @description Until when. */
            end_date: string;
            /** @description What happens when. */
            events: components["schemas"]["Event"][];
            /** @description Its identifier, a UUID. */
            id: string;
            /**
             * @description The status in the words of the types: INACTIVE, IN-PROGRESS, ACTIVE, TIMEDOUT, TERMINATED or FAILURE. Not in
             *     Blazar.
             */
            lease_state: string;
            /** @description SCHEDULE, IMMEDIATE or BEST-EFFORT. Not in Blazar. */
            lease_type: string;
            /** @description Its name. */
            name: string;
            plan?: components["schemas"]["PlanSummary"] | null;
            /** @description The project it belongs to. */
            project_id: string;
            /** @description What is reserved. */
            reservations: components["schemas"]["Reservation"][];
            scheduler_hints?: components["schemas"]["SchedulerHints"] | null;
            /** @description The leases that it recurs with. Not in Blazar. */
            series_id?: string | null;
            /** @description From when: UTC with microseconds, `2030-01-02T10:00:00.000000`. */
            start_date: string;
            /** @description PENDING, STARTING, ACTIVE, TERMINATING, TERMINATED, DELETING or ERROR. */
            status: string;
            /** @description Why it does not get on, if it does not; who may see hosts reads of them as well. Not in Blazar. */
            status_reason?: string | null;
            /**
             * Format: date-time
             * @description Latest start, if it must start in time: RFC 3339, UTC. Not in Blazar.
             */
            timeout_date?: string | null;
            /** @description Always null: there are no trusts. */
            trust_id?: string | null;
            /** @description When it was last changed. */
            updated_at?: string | null;
            usage?: components["schemas"]["LeaseUsage"] | null;
            /** @description Who asked for it. */
            user_id: string;
        };
        /** @description A lease. */
        LeaseBody: {
            /** @description A lease. */
            lease: components["schemas"]["Lease"];
        };
        /** @description A change of a lease; what is absent stays. */
        LeaseChange: {
            /** @description Whether preemptible instances may run on whole hosts of it as long as it does not use them. Not in Blazar. */
            backfill?: boolean;
            /** @description When the action before the end is to be due. */
            before_end_date?: string | null;
            /**
             * @description What becomes of guests at the end: `delete`, `keep`, `snapshot` or `migrate`, until the end has come. Not in
             *     Blazar.
             */
            end_action?: string;
            /** @description A new end. */
            end_date?: string | null;
            /** @description A new name. */
            name?: string;
            /** @description New terms of reservations. */
            reservations?: components["schemas"]["ReservationChange"][];
            /** @description A new start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. */
            start_date?: string | null;
        };
        /** @description A lease that is asked for. */
        LeaseCreate: {
            /** @description Whether preemptible instances may run on whole hosts of it as long as it does not use them. Not in Blazar. */
            backfill?: boolean;
            /** @description When the action before the end is due; by default at the operator's distance from the end. */
            before_end_date?: string | null;
            /**
             * @description For how long, instead of an end: `P1DT4H`, `1d4h`, of whole minutes. With an end: for so long at any time from `start_date` to
             *     `end_date`. Not in Blazar.
             */
            duration?: string | null;
            /**
             * @description What becomes of guests at the end: `delete` (the default), `keep`, `migrate`: they are moved to hosts
             *     that no lease has, as far as that is possible; or `snapshot`: images are made of those on its
             *     hosts, and then they are deleted. Not in Blazar.
             */
            end_action?: string | null;
            /** @description Until when; or a `duration`. Of a best-effort lease, only how long it is after the start matters. */
            end_date?: string | null;
            /**
             * @description Passed over, since clients send them; but one of the type `lease_type:best-effort` is a `lease_type`, and its
             *     `event_date` a `timeout_date`, for clients that know neither.
             */
            events?: unknown[];
            /**
             * @description `SCHEDULE` (the default): at its date. `IMMEDIATE`: at once, or there is no lease. `BEST-EFFORT`: as soon as
             *     possible, but before its timeout. Not in Blazar.
             */
            lease_type?: string | null;
            /** @description Its name; not unique. */
            name: string;
            repeat?: components["schemas"]["RepeatCreate"] | null;
            /** @description What is to be reserved. */
            reservations?: components["schemas"]["ReservationCreate"][];
            scheduler_hints?: components["schemas"]["SchedulerHints"] | null;
            /**
             * @description From when: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. Of a best-effort lease, the earliest start. Only scheduled
             *     leases need it.
             */
            start_date?: string | null;
            /** @description How long a best-effort lease may wait for its start, as a duration. Not in Blazar. */
            timeout?: string | null;
            /** @description Until when it must have started, instead of a timeout. Not in Blazar. */
            timeout_date?: string | null;
            /** @description Whether it waits for its turn if it cannot be had. Not in Blazar. */
            waitlist?: boolean;
        };
        /** @description The lease that an instance is to be part of, or a reservation of it: one of the two; and where it is to run. */
        LeaseHints: {
            /** @description Instances of the project, on whose hosts it is not to run. */
            different_host?: string[];
            /**
             * Format: uuid
             * @description The lease, which is active: the instance runs on its first reservation of hosts, or of room on them.
             */
            lease?: string | null;
            /** @description Whether it is preempted for leases; as the operator has it for the project if not given. Not in a lease. */
            preemptible?: boolean | null;
            /** @description The class of preemptible instances that it is to be of: how much notice it has when it is preempted. */
            preemptible_class?: string | null;
            /**
             * Format: uuid
             * @description A reservation of such a lease.
             */
            reservation?: string | null;
            /** @description Instances of the project, on whose hosts it is to run. */
            same_host?: string[];
        };
        /** @description A lease that was made; or several that recur, with the first of them as the lease. */
        LeaseMadeBody: {
            /** @description The lease. */
            lease: components["schemas"]["Lease"];
            series?: components["schemas"]["Series"] | null;
        };
        /** @description The hosts of a reservation while its lease runs. */
        LeasePool: {
            /**
             * Format: double
             * @description How far CPUs of its hosts are over-committed; null if it is what hosts say, or else not at all.
             */
            cpu_allocation_ratio?: number | null;
            /** @description How many hosts it has. */
            hosts: number;
            /** @description Its identifier: that of its reservation. */
            id: string;
            /** @description The lease that it belongs to. */
            lease_id: string;
            /** @description What schedulers go by: `filter_lease_id`, `blazar:owner`, and ratios. */
            metadata: {
                [key: string]: string;
            };
            /** @description Its name; its identifier, if it was given none. */
            name: string;
            /** @description The project that it belongs to. */
            project_id: string;
            /**
             * Format: double
             * @description The same of memory.
             */
            ram_allocation_ratio?: number | null;
        };
        /** @description A lease pool. */
        LeasePoolBody: {
            /** @description A lease pool. */
            leasepool: components["schemas"]["LeasePool"];
        };
        /** @description What is to be different of a lease pool; null takes back what was said. */
        LeasePoolChange: {
            /**
             * Format: double
             * @description How far CPUs of its hosts are over-committed.
             */
            cpu_allocation_ratio?: number | null;
            /** @description Its name. */
            name?: string | null;
            /**
             * Format: double
             * @description The same of memory.
             */
            ram_allocation_ratio?: number | null;
        };
        /** @description A lease that starts at once, of hosts that make one pool. */
        LeasePoolCreate: {
            /** @description For how long: `P1DT4H`, `1d4h`; whole minutes. */
            duration?: string | null;
            /** @description What becomes of guests at the end. */
            end_action?: string | null;
            /** @description Until when, instead. */
            end_date?: string | null;
            /** @description What its hosts must match. */
            extra_specs?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description How many hosts.
             */
            host_count: number;
            /** @description The pool's name; without one, its identifier. */
            name?: string | null;
            /** @description The project that it is for; administrators only, if it is not the caller's. */
            project_id?: string | null;
            /** @description The same. */
            tenant_id?: string | null;
        };
        /** @description Hosts by which a lease pool is to grow. */
        LeasePoolGrowth: {
            /** @description What they must match, beside what the others do. */
            extra_specs?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description How many; 1 if absent.
             */
            host_count?: number | null;
        };
        /** @description A host of a lease pool. */
        LeasePoolHost: {
            /** @description Its identifier. */
            id: string;
            /** @description The instances on it. */
            instances: components["schemas"]["LeasePoolInstance"][];
            /** @description Its name. */
            name: string;
        };
        /** @description The hosts of a lease pool. */
        LeasePoolHostsBody: {
            /** @description The hosts of a lease pool. */
            hosts: components["schemas"]["LeasePoolHost"][];
        };
        /** @description An instance in a lease pool. */
        LeasePoolInstance: {
            /** @description Its identifier. */
            id: string;
            /** @description Its name, if it was started through this service. */
            name?: string | null;
        };
        /** @description The host of a lease pool that is to be exchanged. */
        LeasePoolSwap: {
            /** @description Its identifier. */
            host_id: string;
        };
        /** @description Lease pools, in the order in which their leases were created. */
        LeasePoolsBody: {
            /** @description Lease pools, in the order in which their leases were created. */
            leasepools: components["schemas"]["LeasePool"][];
            /** @description Where there are more, if a limit was asked for. */
            leasepools_links?: components["schemas"]["Link"][];
        };
        /** @description What a lease amounts to. */
        LeaseUsage: {
            /** @description What is reserved from its start to its end, as things stand. */
            reserved: components["schemas"]["Reserved"];
            /** @description What of that is past. */
            reserved_so_far: components["schemas"]["Reserved"];
            /** @description What instances in it have used. */
            used: components["schemas"]["Used"];
        };
        /** @description Leases, in the order of their creation. */
        LeasesBody: {
            /** @description Leases, in the order of their creation. */
            leases: components["schemas"]["Lease"][];
            /** @description Where there are more, if a limit was asked for. */
            leases_links?: components["schemas"]["Link"][];
        };
        /** @description An address. */
        Link: {
            /** @description The address. */
            href: string;
            /** @description What is there: `next`, `self`. */
            rel: string;
        };
        /** @description Maintenance of a host. */
        Maintenance: {
            /**
             * Format: date-time
             * @description Until when.
             */
            end_date?: string | null;
            /** @description Its name. */
            host: string;
            /** @description The identifier of the host. */
            host_id: string;
            /** @description The lease that keeps others away; null if nothing was booked. */
            lease_id?: string | null;
            /**
             * Format: date-time
             * @description From when, UTC; null if there is no time for it.
             */
            start_date?: string | null;
        };
        /** @description Maintenance, host by host. */
        MaintenanceBody: {
            /** @description Maintenance, host by host. */
            maintenance: components["schemas"]["Maintenance"][];
        };
        /** @description Maintenance that is to be booked, of hosts or of all those of a free pool. */
        MaintenanceCreate: {
            /** @description It is over by then; four weeks later if not given. */
            before?: string | null;
            /** @description How long it takes: `PT2H`, `2h`. */
            duration: string;
            /** @description The name or identifier of a free pool. */
            freepool?: string | null;
            /** @description Names or identifiers of hosts. */
            hosts?: string[];
            /** @description How long nobody may have the host before and after it; ten minutes if not given. */
            margin?: string | null;
            /** @description It does not begin before this: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. */
            not_before?: string | null;
        };
        /** @description Number of refused requests that additional capacity would have met. */
        MetBy: {
            /**
             * Format: int64
             * @description Number of requests that so many would have met.
             */
            met: number;
            /**
             * Format: int32
             * @description Additional hosts, instances or addresses.
             */
            more: number;
        };
        /** @description Names beside identifiers. */
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
            /** @description What happened: `lease.create`, `lease.event.start_lease`, `host.boot_failed`. */
            event_type: string;
            /** @description The lease; nothing of what is about an instance or a host. */
            lease_id?: string | null;
            /**
             * Format: int64
             * @description Its number: later ones have higher numbers.
             */
            number: number;
            /** @description The lease, the instance or the host, as it was then. */
            payload: unknown;
            /** @description The project of its owner; nothing of what is about a host. */
            project_id?: string | null;
            /**
             * Format: date-time
             * @description When it was made: UTC, RFC 3339.
             */
            timestamp: string;
        };
        /** @description Notifications. */
        NotificationsBody: {
            /**
             * Format: int64
             * @description What to ask for next: `after` this.
             */
            last: number;
            /** @description Notifications, oldest first. */
            notifications: components["schemas"]["Notification"][];
        };
        /** @description Who was on the hosts of a lease. */
        OccupancyBody: {
            /**
             * Format: int64
             * @description What to ask for next: `after` this.
             */
            last: number;
            /** @description Intervals, oldest first. */
            occupancy: components["schemas"]["OccupancyInterval"][];
            /**
             * Format: date-time
             * @description Until when all that was seen is recorded: UTC, RFC 3339. Intervals without an end lasted at least until then.
             */
            seen_until?: string | null;
        };
        /** @description What looks at a host of a lease saw, from the first one to the last one that saw the same. */
        OccupancyInterval: {
            /**
             * @description Whether records of the host in this lease begin here. If the first interval of a host doesn't say so, older ones have
             *     expired.
             */
            begins: boolean;
            /**
             * Format: date-time
             * @description End of the last look that saw it; of `unseen`, beginning of the next look. Null while it lasts.
             */
            end?: string | null;
            /** @description The host's name; null if the service doesn't have the host any more. */
            host?: string | null;
            /** @description The host, by its identifier. */
            host_id: string;
            /** @description The instance. Of other projects, only for those who may see hosts. */
            instance_id?: string | null;
            /**
             * @description `fenced`: nobody can start instances, and other tenants' instances leave. `verified`: nobody can start instances, and
             *     only instances of the lease were found. `held`: only the lease's project can start instances. `unfenced`: the lease has
             *     the host, but the fence is missing, so others can start instances. `releasing`: the host is being taken back.
             *     `released`: the lease has given it back. `instance`: an instance of the lease's project was there.
             *     `foreign_instance`: an instance of another project, or of an unknown one, was there. `unseen`: no look saw which
             *     instances were there.
             */
            kind: string;
            /**
             * Format: int64
             * @description Its number: later ones have higher numbers.
             */
            number: number;
            /** @description The instance's project, if it is known. Other projects, only for those who may see hosts. */
            project_id?: string | null;
            /**
             * Format: date-time
             * @description Beginning of the first look that saw it (end of a host's first look); of `unseen`, end of the look before. UTC, RFC 3339.
             */
            start: string;
        };
        /** @description What could be had instead of what was refused. */
        Offer: {
            /**
             * Format: date-time
             * @description Until when it can be accepted; null if it is only said.
             */
            expires_at?: string | null;
            /** @description The hosts that are reserved until then; only for those who may see allocations of hosts. */
            host_ids?: string[] | null;
            /** @description By which it is accepted; null if it is only said, and nothing is reserved for it. */
            id?: string | null;
            /** @description What is different: `later_start`, `shorter_duration`, `fewer_hosts`, `other_pool` or `longer_timeout`. */
            kind: string;
            /** @description The lease as it would be. A new one has the offer's identifier once it is accepted. */
            lease: components["schemas"]["Lease"];
            /** @description The lease that would change; null if it would be a new one. */
            lease_id?: string | null;
            /**
             * Format: int64
             * @description Its number among the held offers to the caller, from 1: those of the newest refusal first. Null if it is only said or
             *     was made to another user.
             */
            number?: number | null;
        };
        /** @description An offer. */
        OfferBody: {
            /** @description An offer. */
            offer: components["schemas"]["Offer"];
        };
        /** @description A hint that may be given. */
        OfferedHint: {
            /** @description `hosts`, which it chooses, or `instances`, which inherit it. */
            applies_to: string;
            /** @description What it is for. */
            description: string;
            /** @description What a value is: `expression`, `hosts`, `leases` or `choice`. There may be several of hosts and leases. */
            domain: string;
            /** @description Its name. */
            name: string;
            /** @description Hints that it cannot be given together with. All others it can. */
            not_with: string[];
            /** @description Types of reservations that it can be given for. */
            resource_types: string[];
            /** @description All values that there are; null if they cannot be counted, or the caller may not know them. */
            values?: string[] | null;
        };
        /** @description All hints that may be given, and when they are too strict. */
        OfferedHints: {
            /** @description The hints. */
            hints: components["schemas"]["OfferedHint"][];
            /**
             * Format: int32
             * @description So many hosts have to match them at least, whether they are free or not.
             */
            least_hosts: number;
            /** @description The property of hosts that says where they are. */
            location_property: string;
            /** @description Whether `host` may be a single one. */
            single_host: boolean;
        };
        /** @description Offers that hold. */
        OffersBody: {
            /** @description Offers that hold. */
            offers: components["schemas"]["Offer"][];
        };
        /** @description An answer about a cluster: the document that the command prints, in the field that has the question's name. */
        PlacementAnswer: {
            /** @description Of `allot hbal --json --explain`. */
            balance?: unknown;
            /** @description Of `allot drain --json`. */
            drain?: unknown;
            /** @description Of `allot fit --json`. */
            fit?: unknown;
            /** @description Of `allot whatif --json`. */
            whatif?: unknown;
        };
        /** @description What is planned for a lease, and how far it is. */
        Plan: {
            /**
             * Format: int64
             * @description Instances that are neither where they were nor where they were to go.
             */
            gone: number;
            /** @description The lease. */
            lease_id: string;
            /**
             * Format: int64
             * @description Instances that have moved.
             */
            moved: number;
            /** @description The moves in their order; null to callers who may not see hosts, since the instances belong to others. */
            moves?: components["schemas"]["PlannedMove"][] | null;
            summary?: components["schemas"]["PlanSummary"] | null;
        };
        /** @description What is planned for a lease, and how far it is. */
        PlanBody: {
            /** @description What is planned for a lease, and how far it is. */
            plan: components["schemas"]["Plan"];
        };
        /** @description What is planned for a lease, in short. */
        PlanSummary: {
            /**
             * Format: int64
             * @description Disk to copy, GiB.
             */
            disk_gb: number;
            /**
             * Format: int64
             * @description How long all of them together stand still, milliseconds.
             */
            downtime_ms: number;
            /**
             * Format: int64
             * @description How long it may take, seconds. The lease lasts that much less if it takes longer.
             */
            expected_seconds: number;
            /**
             * Format: int64
             * @description Hosts to clear.
             */
            hosts_to_clear: number;
            /**
             * Format: int64
             * @description Instances to move to other hosts.
             */
            instances_to_move: number;
            /**
             * Format: int64
             * @description Memory to copy, MiB.
             */
            memory_mb: number;
        };
        /** @description A move. */
        PlannedMove: {
            /** @description The host that it is moved from. */
            from_host: string;
            /** @description The instance. */
            instance_id: string;
            /**
             * Format: int32
             * @description Of one that is moving, how much is on the other host already, percent; null if the cloud does not say.
             */
            percent?: number | null;
            /** @description `waiting`, `moving`, `failing`, `moved`, or `gone`. */
            state: string;
            /** @description The host that it is moved to. */
            to_host: string;
        };
        /** @description What preemptible instances came to. */
        PreemptibleBody: {
            /** @description What preemptible instances came to. */
            preemptible: components["schemas"]["PreemptibleUsage"];
        };
        /** @description Projects whose instances are preemptible unless a request says otherwise. */
        PreemptibleProject: {
            /**
             * Format: date-time
             * @description Since when they are listed; null if by the settings.
             */
            created_at?: string | null;
            /** @description Their identifiers, with `*` for anything and `?` for any character. */
            pattern: string;
        };
        /** @description Projects whose instances are preemptible, of one pattern. */
        PreemptibleProjectBody: {
            /** @description Projects whose instances are preemptible, of one pattern. */
            project: components["schemas"]["PreemptibleProject"];
        };
        /** @description All patterns of projects whose instances are preemptible, those of the settings first. */
        PreemptibleProjectsBody: {
            /** @description All patterns of projects whose instances are preemptible, those of the settings first. */
            projects: components["schemas"]["PreemptibleProject"][];
        };
        /** @description What preemptible instances came to in a period that is past. */
        PreemptibleUsage: {
            /**
             * Format: int64
             * @description Instances that began to run.
             */
            begun: number;
            /**
             * Format: double
             * @description CPUs times the hours that they were used.
             */
            core_hours: number;
            /**
             * Format: date-time
             * @description Until when.
             */
            end: string;
            /**
             * Format: double
             * @description How many hours instances ran, all together.
             */
            hours: number;
            /**
             * Format: double
             * @description How many hours those had run that were preempted: what is lost if they kept nothing.
             */
            hours_lost: number;
            /**
             * Format: int64
             * @description Instances that were preempted for leases.
             */
            preempted: number;
            /**
             * Format: date-time
             * @description From when: UTC.
             */
            start: string;
            /**
             * Format: double
             * @description The part of all CPUs of all hosts that was used so, from 0 to 1; null to callers who may not see hosts.
             */
            utilisation_gained?: number | null;
        };
        /** @description The properties of hosts. */
        PropertiesBody: {
            /** @description The properties of hosts. */
            resource_properties: components["schemas"]["Property"][];
        };
        /** @description A property of hosts, that is, the name of a capability; the rest only if details are asked for. */
        Property: {
            /** @description Whether it is left out of lists unless all are asked for. */
            private?: boolean | null;
            /** @description Its name. */
            property: string;
            /** @description The values that hosts have. */
            values?: string[] | null;
        };
        /** @description A property. */
        PropertyBody: {
            /** @description A property. */
            resource_property: components["schemas"]["ResourceProperty"];
        };
        /** @description The visibility of a property. */
        PropertyChange: {
            /** @description Whether it is to be left out of lists unless all are asked for. */
            private: boolean;
        };
        /** @description Answers of a cluster's remote API, version 2. */
        RapiDocuments: {
            /** @description That to `/2/groups?bulk=1`. */
            groups: unknown;
            /** @description That to `/2/info`. */
            info: unknown;
            /** @description That to `/2/instances?bulk=1`. */
            instances: unknown;
            /** @description That to `/2/nodes?bulk=1`. */
            nodes: unknown;
        };
        /** @description Requests for the same kind of hosts, instances or addresses that were refused for lack of them. */
        RefusedRequests: {
            /**
             * @description What was asked for: properties of hosts (`gpu=a100 and vcpus>=16`), size of instances, a flavor, or a network; empty
             *     for any host.
             */
            kind: string;
            /** @description How many of them more capacity would have met, each by itself. Empty if none. */
            met_by: components["schemas"]["MetBy"][];
            /**
             * Format: int64
             * @description Number of refused requests.
             */
            refused: number;
            /** @description Type of the reservation: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`. */
            resource_type: string;
        };
        /** @description How a lease recurs. */
        RepeatCreate: {
            /** @description From one start to the next, by the calendar: `1w`, `1d`, `1mo`. */
            every: string;
            /** @description Whether dates that cannot be had are left out; if not, one of them has all refused. */
            skip_unavailable?: boolean;
            /** @description Whose time of the day stays the same. */
            time_zone?: string | null;
            /**
             * Format: int32
             * @description How often; or `until`.
             */
            times?: number | null;
            /** @description As long as it starts before this date. */
            until?: string | null;
        };
        /** @description A reservation of a lease. */
        Reservation: components["schemas"]["Resource"] & {
            /** @description When it was made. */
            created_at: string;
            /** @description Its addresses. Not in Blazar. */
            floating_ips?: string[];
            /** @description The names of its hosts, whole or in part. Not in Blazar. */
            hosts?: string[];
            /** @description Its identifier, a UUID. */
            id: string;
            /** @description The lease it belongs to. */
            lease_id: string;
            /** @description Something failed and there was no replacement. */
            missing_resources: boolean;
            /** @description The same as `id`; Blazar has a row of another table here. */
            resource_id: string;
            /** @description Something was exchanged while the lease was active. */
            resources_changed: boolean;
            /** @description pending, active, deleted or error. */
            status: string;
            /** @description When it was last changed. */
            updated_at?: string | null;
        };
        /**
         * @description New terms of a reservation: which one it is, and those fields that change. What is absent or empty stays; null takes
         *     back what was said of hosts beside expressions. Fields of other types, and fields that are not listed, are ignored.
         */
        ReservationChange: {
            /** @description Instances: true on one host, false on distinct hosts, null anywhere. */
            affinity?: boolean | null;
            /** @description Properties that must have equal values on all hosts: all of them. Not in Blazar. */
            alike?: string[] | null;
            /**
             * Format: int32
             * @description Instances or addresses: so many.
             */
            amount?: number | null;
            /** @description The availability zone that they are to be in. Not in Blazar. */
            availability_zone?: string | null;
            /** @description What is done before the end with what runs on hosts: `default`, `snapshot` or nothing. */
            before_end?: string | null;
            /**
             * Format: int32
             * @description Disk of each instance, GiB.
             */
            disk_gb?: number | null;
            /**
             * Format: int32
             * @description Disk of each host, at least, GiB. Not in Blazar.
             */
            disk_gib?: number | null;
            /**
             * Format: int32
             * @description Second disk of each instance, GiB, which stays as it is. Not in Blazar.
             */
            ephemeral_gb?: number | null;
            /** @description What hosts must be like in Nova's words: all of it; of instances, they stay as they are. Not in Blazar. */
            extra_specs?: {
                [key: string]: string;
            } | null;
            /** @description The flavor of instances, which stays as it is. */
            flavor_id?: string | null;
            /** @description Whether all hosts must have the same CPUs and hypervisor. Not in Blazar. */
            homogeneous?: boolean | null;
            /** @description What hosts must be like, as in a new lease. */
            hypervisor_properties?: string | null;
            /** @description The reservation's identifier. */
            id: string;
            /** @description Properties of the image that guests are to run: all of them. Not in Blazar. */
            image_properties?: {
                [key: string]: string;
            } | null;
            /**
             * Format: int32
             * @description Hosts: at most so many.
             */
            max?: number | null;
            /**
             * Format: int32
             * @description Memory of each instance, MiB.
             */
            memory_mb?: number | null;
            /**
             * Format: int32
             * @description Memory of each host, at least, MiB. Not in Blazar.
             */
            memory_mib?: number | null;
            /**
             * Format: int32
             * @description Hosts: at least so many.
             */
            min?: number | null;
            /** @description The network of addresses. */
            network_id?: string | null;
            /** @description The region that hosts are to be in. Not in Blazar. */
            region?: string | null;
            /** @description These addresses among them. */
            required_floatingips?: string[] | null;
            /** @description The same, of hosts and of those of instances; both must hold. */
            resource_properties?: string | null;
            /** @description Its type, which stays as it is. */
            resource_type?: string | null;
            /** @description What may fail without the lease having fewer hosts than it asks for. Not in Blazar. */
            survives?: string | null;
            /**
             * Format: int32
             * @description Virtual CPUs of each instance; of each host, at least, which is not in Blazar.
             */
            vcpus?: number | null;
        };
        /** @description What is to be reserved. Fields that are not listed are ignored. */
        ReservationCreate: {
            /** @description Properties that must have equal values on all of them, such as `cpu_mhz`. */
            alike?: string[];
            /** @description The availability zone that they are to be in. */
            availability_zone?: string | null;
            /** @description What is done before the end: `default`, `snapshot` or nothing. */
            before_end?: string;
            /**
             * Format: int32
             * @description Disk of each, at least, GiB.
             */
            disk_gib?: number | null;
            /** @description What they must be like in Nova's words: `capabilities:cpu_info:arch` and `x86_64`. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description Whether all of them must have the same CPUs and hypervisor. */
            homogeneous?: boolean;
            /** @description What hosts must be like: an expression as JSON, such as `["==", "$rack", "r1"]`, in a string. */
            hypervisor_properties?: string | null;
            /** @description Properties of the image that guests are to run, by Glance's names. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description At most so many.
             */
            max: number;
            /**
             * Format: int32
             * @description Memory of each, at least, MiB.
             */
            memory_mib?: number | null;
            /**
             * Format: int32
             * @description At least so many.
             */
            min: number;
            /** @description The name of the pool that its hosts are while the lease runs; without one, the reservation's identifier. */
            pool_name?: string | null;
            /** @description The region that hosts are to be in. This and what follows is not in Blazar. */
            region?: string | null;
            /** @description The same; both must hold. */
            resource_properties?: string | null;
            /** @enum {string} */
            resource_type: "physical:host";
            /**
             * @description What may fail without the lease having fewer hosts than it asks for: `host`, or a property that says where
             *     hosts are, as `rack`. It has so many more.
             */
            survives?: string | null;
            /**
             * Format: int32
             * @description Virtual CPUs of each, at least.
             */
            vcpus?: number | null;
        } | {
            /** @description true: on one host; false: on distinct hosts; null: anywhere. */
            affinity?: boolean | null;
            /**
             * Format: int32
             * @description How many.
             */
            amount: number;
            /**
             * Format: int32
             * @description Disk of each, GiB.
             */
            disk_gb: number;
            /**
             * Format: int32
             * @description Second disk of each, GiB. Not in Blazar, as `extra_specs`.
             */
            ephemeral_gb?: number | null;
            /**
             * @description Extra specs of their flavor, in Nova's words: `hw:cpu_policy` and `dedicated`. Hosts must have the resources and
             *     traits that they name. Requires the policy rule `blazar:leases:extra_specs`.
             */
            extra_specs?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description Memory of each, MiB.
             */
            memory_mb: number;
            /** @description What hosts must be like. */
            resource_properties?: string | null;
            /** @enum {string} */
            resource_type: "virtual:instance";
            /** @description What may fail without there being room for fewer: `host`, or a property that says where hosts are, as `rack`. */
            survives?: string | null;
            /**
             * Format: int32
             * @description Virtual CPUs of each.
             */
            vcpus: number;
        } | {
            /** @description Always null. */
            affinity?: boolean | null;
            /**
             * Format: int32
             * @description How many.
             */
            amount: number;
            /** @description The flavor. */
            flavor_id: string;
            /** @enum {string} */
            resource_type: "flavor:instance";
            /** @description What may fail without there being room for fewer: `host`, or a property that says where hosts are, as `rack`. */
            survives?: string | null;
        } | {
            /**
             * Format: int32
             * @description How many.
             */
            amount: number;
            /** @description The network. */
            network_id: string;
            /** @description These among them. */
            required_floatingips?: string[];
            /** @enum {string} */
            resource_type: "virtual:floatingip";
        };
        /** @description What was reserved. */
        Reserved: {
            /**
             * Format: double
             * @description Addresses times hours.
             */
            address_hours: number;
            /**
             * Format: double
             * @description CPUs, of whole hosts and of room, times hours.
             */
            core_hours: number;
            /**
             * Format: double
             * @description GiB of disk times hours.
             */
            disk_gib_hours: number;
            /**
             * Format: double
             * @description GiB of memory times hours.
             */
            gib_hours: number;
            /**
             * Format: double
             * @description Whole hosts times hours.
             */
            host_hours: number;
            /**
             * Format: double
             * @description Slots of room for instances times hours.
             */
            slot_hours: number;
        };
        /** @description What is reserved. */
        Resource: {
            /**
             * Format: int32
             * @description The number of the host aggregate, null until there is one; not given where the fleet is no cloud that has
             *     aggregates.
             */
            aggregate_id?: number | null;
            /** @description Properties that must have equal values on all of them. */
            alike?: string[];
            /** @description The availability zone that they are to be in. */
            availability_zone?: string | null;
            /** @description What is done before the end: default, snapshot or nothing. */
            before_end: string;
            /**
             * Format: int32
             * @description Disk of each, at least, GiB.
             */
            disk_gib?: number | null;
            /** @description What they must be like in Nova's words: `capabilities:cpu_info:arch` and `x86_64`. */
            extra_specs?: {
                [key: string]: string;
            };
            /** @description The flavors to start servers with on the hosts, where these let in no others; not given elsewhere. */
            flavor_ids?: string[];
            /** @description Whether all of them must have the same CPUs and hypervisor. */
            homogeneous?: boolean;
            /** @description What hosts must be like. */
            hypervisor_properties?: string | null;
            /** @description Properties of the image that guests are to run, by Glance's names. */
            image_properties?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description At most so many.
             */
            max: number;
            /**
             * Format: int32
             * @description Memory of each, at least, MiB.
             */
            memory_mib?: number | null;
            /**
             * Format: int32
             * @description At least so many.
             */
            min: number;
            /** @description The region that hosts are to be in. This and what follows is not in Blazar. */
            region?: string | null;
            /** @description What hosts must be like. */
            resource_properties?: string | null;
            /** @enum {string} */
            resource_type: "physical:host";
            /**
             * @description What may fail without the lease having fewer hosts than it asks for: `host`, or a property that says where
             *     hosts are, as `rack`. It has so many more.
             */
            survives?: string | null;
            /**
             * Format: int32
             * @description Virtual CPUs of each, at least.
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
             * @description How many.
             */
            amount: number;
            /** @description The network. */
            network_id: string;
            /** @description These among them. */
            required_floatingips: string[];
            /** @enum {string} */
            resource_type: "virtual:floatingip";
        };
        /**
         * @description A property after a change of its visibility. Its dates have microseconds, as those of leases and unlike those of other
         *     records: Blazar writes them so here, and gophercloud reads nothing else.
         */
        ResourceProperty: {
            /** @description When it was entered. */
            created_at: string;
            /** @description Its identifier, a UUID. */
            id: string;
            /** @description Whether it is left out of lists unless all are asked for. */
            private: boolean;
            /** @description Its name. */
            property_name: string;
            /** @description `physical:host`. */
            resource_type: string;
            /** @description When it was last changed. */
            updated_at?: string | null;
        };
        /** @description The hints of a lease. Nothing changes them. */
        SchedulerHints: {
            /** @description Leases of the project whose hosts will not do. */
            different_host?: string[];
            /** @description How instances are spread: `affinity`, `anti-affinity`, `soft-affinity` or `soft-anti-affinity`. */
            group?: string | null;
            /** @description Names of hosts that will do. */
            host?: string[];
            /** @description Where the hosts of a reservation are to each other: `same` or `different`. */
            location?: string | null;
            /** @description What each host must match, as JSON in text: `[">=", "$vcpus", "16"]`. */
            query?: string | null;
            /** @description Leases of the project whose hosts will do, as they are when this lease is made. */
            same_host?: string[];
        };
        /** @description Leases that were made together. */
        Series: {
            /** @description What they are found by. */
            id: string;
            /** @description The leases, by start. */
            leases: components["schemas"]["Lease"][];
            /** @description Dates that were left out, since the lease could not be had. */
            skipped: components["schemas"]["Skipped"][];
        };
        /** @description Leases that were made together. */
        SeriesBody: {
            /** @description Leases that were made together. */
            series: components["schemas"]["Series"];
        };
        /** @description Who sends a request, and what they may do. */
        Session: {
            /** @description How the user was identified: `token`, `password`, or `none` where everybody is the administrator. */
            authentication: string;
            /**
             * Format: date-time
             * @description When the session ends: UTC, RFC 3339; null where there is none.
             */
            expires_at?: string | null;
            /** @description With what one can log in here: `token`, `password`, or `none`. */
            may_log_in_with: string[];
            /** @description The project. */
            project_id: string;
            /** @description What people call the project; null if that is not known. */
            project_name?: string | null;
            /** @description Identifiers of the projects that the user has a role in; null unless the service's own file of users has them. */
            projects?: string[] | null;
            /** @description The user's roles in the project, with those that they imply. */
            roles: string[];
            /** @description By the names of rules, as a policy file has them, what the user may do in the project. */
            rules: {
                [key: string]: boolean;
            };
            /** @description The user's identifier. */
            user: string;
            /** @description What people call the user; null if that is not known. */
            user_name?: string | null;
        };
        /**
         * @description With what one logs in to the console: one of `auth`, `token`, and `user` with `password`. Without any, the headers
         *     `X-Auth-Token` or `Authorization` say it.
         */
        SessionBegin: {
            /** @description As the body of `POST /identity/v3/auth/tokens` has it. */
            auth?: Record<string, never> | null;
            /** @description The user's password. */
            password?: string | null;
            /** @description The project; the user's usual one if it is not said. */
            project?: string | null;
            /** @description A token. */
            token?: string | null;
            /** @description A user's name. */
            user?: string | null;
        };
        /** @description Who one is. */
        SessionBody: {
            /** @description Who one is. */
            session: components["schemas"]["Session"];
        };
        /** @description A setting that the service was started with. */
        Setting: {
            /** @description What it is where nobody says anything else; null if that is nothing. */
            default?: string | null;
            /** @description What it is for. */
            description: string;
            /** @description The heading that it stands under in the documentation. */
            heading: string;
            /** @description Its key in the configuration file, with the section's: `log.format`. */
            key: string;
            /** @description Where the value was found: `flag`, `environment`, `file` or `default`. */
            source: string;
            /**
             * @description As it would be written in the file; null if there is none. Of addresses only the scheme, the host and the port,
             *     since the rest may be a secret.
             */
            value?: string | null;
        };
        /** @description The operator's settings. */
        SettingsBody: {
            /** @description All settings, in the order of the documentation. */
            settings: components["schemas"]["Setting"][];
        };
        /** @description A date that was left out. */
        Skipped: {
            /**
             * Format: date-time
             * @description Until when.
             */
            end_date: string;
            /** @description Why. */
            reason: string;
            /**
             * Format: date-time
             * @description From when.
             */
            start_date: string;
        };
        /** @description A time. */
        Span: {
            /**
             * Format: date-time
             * @description Until when.
             */
            end: string;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
        };
        /** @description Usage of one period, and of whom or what it was asked by. */
        Usage: {
            /**
             * Format: date-time
             * @description Until when.
             */
            end: string;
            /** @description The lease; absent for instances that are in none. */
            lease_id?: string | null;
            /** @description The type of the lease. */
            lease_type?: string | null;
            /**
             * Format: int64
             * @description Leases that started.
             */
            leases_started: number;
            /** @description The free pool that hosts came from; absent for what is in none. */
            pool?: string | null;
            /** @description The project. */
            project_id?: string | null;
            /** @description What leases reserved. */
            reserved: components["schemas"]["Reserved"];
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
            /** @description What instances beside all leases used. */
            unleased: components["schemas"]["Used"];
            /** @description What instances in leases used. */
            used: components["schemas"]["Used"];
            /** @description The user. */
            user_id?: string | null;
        };
        /** @description Usage, by period and by what it was asked. */
        UsageBody: {
            /**
             * Format: date-time
             * @description Until when; not later than now.
             */
            end: string;
            /**
             * Format: date-time
             * @description From when: UTC, RFC 3339.
             */
            start: string;
            /** @description Sums; none of what there is nothing of. */
            usage: components["schemas"]["Usage"][];
        };
        /** @description Something that happened to a lease or an instance. */
        UsageEvent: {
            /**
             * Format: date-time
             * @description Until when it is then.
             */
            end_date?: string | null;
            /** @description What: `lease.started`, `instance.moved`. */
            event: string;
            /** @description The hosts that it has then, by their identifiers; that of the instance. */
            hosts: string[];
            /** @description The instance. */
            instance_id?: string | null;
            /** @description The lease, or that of the instance. */
            lease_id?: string | null;
            /** @description The type of the lease. */
            lease_type?: string | null;
            /**
             * Format: int64
             * @description Its number: later ones have higher numbers.
             */
            number: number;
            /** @description The project. */
            project_id: string;
            /** @description Why, where that is known. */
            reason?: string | null;
            /**
             * Format: date-time
             * @description From when the lease is then: UTC, RFC 3339.
             */
            start_date?: string | null;
            /** @description The status after it. */
            status: string;
            /**
             * Format: date-time
             * @description When: UTC, RFC 3339.
             */
            timestamp: string;
            /** @description The user. */
            user_id: string;
        };
        /** @description What happened. */
        UsageEventsBody: {
            /** @description Events, oldest first. */
            events: components["schemas"]["UsageEvent"][];
            /**
             * Format: int64
             * @description What to ask for next: `after` this.
             */
            last: number;
        };
        /** @description What instances used. */
        Used: {
            /**
             * Format: double
             * @description CPUs times hours.
             */
            core_hours: number;
            /**
             * Format: double
             * @description GiB of disk times hours.
             */
            disk_gib_hours: number;
            /**
             * Format: double
             * @description GiB of memory times hours.
             */
            gib_hours: number;
            /**
             * Format: double
             * @description Instances times hours.
             */
            instance_hours: number;
            /**
             * Format: int64
             * @description Instances that were started.
             */
            instances_started: number;
        };
        /**
         * @description What a server sees as `vendor_data2.json`, below the name that Nova's configuration gives to this service. Empty if it is
         *     on no host of the service.
         */
        Vendordata: {
            /**
             * Format: date-time
             * @description When it is gone at the latest.
             */
            gone_date?: string | null;
            lease?: components["schemas"]["VendordataLease"] | null;
            /** @description Whether leases preempt it. */
            preemptible?: boolean | null;
            /**
             * Format: date-time
             * @description When it is asked to shut down, if a lease that needs its place is known.
             */
            shutdown_date?: string | null;
        };
        /** @description The lease of a server. */
        VendordataLease: {
            /** @description `delete`, `keep`, `snapshot` or `migrate`. */
            end_action: string;
            /**
             * Format: date-time
             * @description When it ends: what becomes of the server then, its end action says.
             */
            end_date: string;
            /** @description Its identifier. */
            id: string;
            /** @description Its name. */
            name: string;
            /** @description The reservation whose place the server takes; absent if that may be one of several. */
            reservation_id?: string | null;
            /**
             * Format: date-time
             * @description When it starts.
             */
            start_date: string;
            /** @description PENDING, ACTIVE and so on. */
            status: string;
        };
        /** @description What Nova asks about a server (`DynamicJSON`). It sends more, which is not looked at. */
        VendordataRequest: {
            /** @description The server's identifier, a UUID. */
            "instance-id": string;
        };
        /** @description A version of the API. */
        Version: {
            /** @description Its identifier. */
            id: string;
            /** @description Where it is. */
            links: components["schemas"]["Link"][];
            /** @description The highest microversion. */
            max_version: string;
            /** @description The lowest microversion. */
            min_version: string;
            /** @description CURRENT. */
            status: string;
        };
        /** @description All versions. */
        VersionsBody: {
            /** @description All versions. */
            versions: components["schemas"]["Version"][];
        };
        /** @description Requests that wait. */
        WaitlistBody: {
            /** @description Requests that wait. */
            waitlist: components["schemas"]["WaitlistEntry"][];
        };
        /** @description A request that waits for its turn. */
        WaitlistEntry: {
            /**
             * Format: date-time
             * @description Between which dates it may lie, if it has none of its own: the earliest start.
             */
            earliest_start_date?: string | null;
            /**
             * Format: date-time
             * @description When it has to start, or it is not wanted any more.
             */
            expires_at: string;
            /** @description Its identifier, and that of the lease once it is served. */
            id: string;
            /**
             * Format: date-time
             * @description The latest end.
             */
            latest_end_date?: string | null;
            /** @description What is asked for, as a lease. */
            lease: components["schemas"]["Lease"];
            /**
             * Format: int64
             * @description Its place in the line, from 1. Those before it may be of other projects.
             */
            place: number;
        };
        /** @description A request that waits. */
        WaitlistEntryBody: {
            /** @description A request that waits. */
            waitlist_entry: components["schemas"]["WaitlistEntry"];
        };
        /**
         * @description What the cluster would be like after changes, as `allot whatif` has it. At least one change must be given.
         *
         *     One of `cluster`, `fleet`, `text` and `rapi` says about which cluster.
         */
        WhatifQuestion: {
            /** @description Instances that are created: `COUNT,DISK,RAM,CPUS[,TEMPLATE]` each. */
            add_instances?: string[];
            /** @description Empty nodes that join: `COUNT,DISK,RAM,CPUS[,SPINDLES][@GROUP]` each. */
            add_nodes?: string[];
            /** @description Whether instances are placed only where every node can still be emptied; so it is if it is not said. */
            capacity_checks?: boolean | null;
            /** @description The name that the operator has given a cluster. */
            cluster?: string | null;
            /** @description Disk template of the instances that room is counted for. */
            disk_template?: string | null;
            /** @description True: the hosts of the service's own fleet as nodes, and what runs there as instances. */
            fleet?: boolean | null;
            /** @description Judge redundancy group by group. */
            independent_groups?: boolean | null;
            /**
             * Format: int32
             * @description Count room for at most so many instances of a size.
             */
            limit?: number | null;
            /** @description Nodes that die. */
            lose?: string[];
            /**
             * Format: double
             * @description Allow so many virtual CPUs per physical one, instead of what the policy allows.
             */
            max_cpu?: number | null;
            /**
             * Format: double
             * @description Keep this share of each node's disk free, from 0 to 1.
             */
            min_disk?: number | null;
            /** @description Which nodes fail N+1 at first: those short of `recorded` or of `reported` free memory. */
            n1_initial?: string | null;
            /** @description Nodes that are to be taken for offline. */
            offline?: string[];
            rapi?: components["schemas"]["RapiDocuments"] | null;
            /** @description The groups are balanced in the end. */
            rebalance?: boolean | null;
            /** @description Instances that are removed. */
            remove_instances?: string[];
            /** @description Instances that get other sizes: `INSTANCE:mem=SIZE,vcpus=N,disk=SIZE` each. */
            resize?: string[];
            /** @description A cluster in Ganeti's text format, as `hscan` and `hbal -S` write it. */
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
