// Hosts with their pools, capabilities, power, instances and current leases. Also energy and drift.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ApiError, type Bodies, clock, get, type Host, type Instance, path, request } from "./api/client";
import { type CalendarHost, loadCalendar } from "./calendar/data";
import { DAY, HOUR } from "./calendar/geometry";
import { parse, rfc3339 } from "./calendar/zone";
import { Confirm, gib, LoadState, Name, NothingListed, Refusal, Search, usePart } from "./parts";
import { adjust, href, type Route } from "./route";
import { changes, may, useContextOf, useLoaded, useNow } from "./state";
import { t } from "./texts";

/** Fields that every host has. All other fields are capabilities. */
const OWN = new Set([
  "id",
  "hypervisor_hostname",
  "service_name",
  "hypervisor_type",
  "hypervisor_version",
  "vcpus",
  "memory_mb",
  "local_gb",
  "cpu_info",
  "status",
  "availability_zone",
  "trust_id",
  "reservable",
  "created_at",
  "updated_at",
]);

interface Facts {
  hosts: Host[];
  power: Map<string, Bodies["EnergyHost"]>;
  instances: Map<string, Instance[]>;
  allocations: Bodies["Allocation"][];
  leases: Map<string, string>;
  /** Current status by host ID, from the calendar. */
  status: Map<string, CalendarHost["status"]>;
}

/** Loads all lists that the view joins. Lists that the caller isn't allowed to see are empty. */
async function load(signal: AbortSignal): Promise<Facts> {
  const optional = async <T,>(promise: Promise<T>, standard: T): Promise<T> =>
    promise.catch((error: unknown) => {
      if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return standard;
      throw error;
    });
  const now = clock.now();
  const [hosts, power, instances, allocations, leases, calendar] = await Promise.all([
    get<{ hosts: Host[] }>("/v1/os-hosts", {}, signal),
    optional(get<Bodies["EnergyHostsBody"]>("/v1/energy/hosts", {}, signal), { hosts: [] }),
    optional(get<Bodies["InstancesBody"]>("/v1/instances", {}, signal), { instances: [] }),
    optional(get<Bodies["AllocationsBody"]>("/v1/os-hosts/allocations", {}, signal), { allocations: [] }),
    optional(get<Bodies["LeasesBody"]>("/v1/leases", {}, signal), { leases: [] }),
    optional(loadCalendar({ start: now, end: now + HOUR }, "pool", null, signal), null),
  ]);
  const byHost = new Map<string, Instance[]>();
  for (const instance of instances.instances) {
    if (!instance.host) continue;
    const list = byHost.get(instance.host);
    if (list) list.push(instance);
    else byHost.set(instance.host, [instance]);
  }
  return {
    hosts: hosts.hosts,
    power: new Map(power.hosts.map((host) => [host.host_id, host])),
    instances: byHost,
    allocations: allocations.allocations,
    leases: new Map(leases.leases.map((lease) => [lease.id, lease.name])),
    status: new Map(calendar?.hosts.map((host) => [host.id, host.status])),
  };
}

/** vCPUs and memory that instances use, and the totals of the host. */
function used(host: Host, instances: readonly Instance[]): string {
  const sum = (of: (instance: Instance) => number): number =>
    instances.reduce((total, instance) => total + of(instance), 0);
  return t.fleet.used(
    sum((instance) => instance.vcpus),
    host.vcpus,
    gib(sum((instance) => instance.memory_mb)),
    gib(host.memory_mb),
  );
}

export function FleetView({ route }: { route: Route }): JSX.Element {
  const { session } = useContextOf();
  const now = useNow(() => clock.now(), 5000);
  const loaded = useLoaded("fleet", load);
  const [filter, setFilter] = useState(route.query.get("find") ?? "");
  const [closing, setClosing] = useState<Host | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const facts = loaded.data;
  const held = useMemo(() => {
    const found = new Map<string, { id: string; name: string }[]>();
    for (const { resource_id, reservations } of facts?.allocations ?? []) {
      const current = reservations.filter(
        (reservation) => parse(reservation.start_date) <= now && parse(reservation.end_date) > now,
      );
      const ids = [...new Set(current.map((reservation) => reservation.lease_id))];
      found.set(
        resource_id,
        ids.map((id) => ({ id, name: facts?.leases.get(id) ?? id })),
      );
    }
    return found;
  }, [facts, Math.floor(now / 15_000)]);
  const capabilities = (host: Host): [string, string][] =>
    Object.entries(host as Record<string, unknown>)
      .filter(([name]) => !OWN.has(name))
      .map(([name, value]) => [name, String(value)]);
  const shown = useMemo(() => {
    const wanted = filter.trim().toLowerCase().split(/\s+/).filter(Boolean);
    return (facts?.hosts ?? []).filter((host) => {
      const text = [host.hypervisor_hostname, ...capabilities(host).map(([name, value]) => `${name}=${value}`)]
        .join(" ")
        .toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
  }, [facts, filter]);
  const [part, more] = usePart(shown);
  const mayClose = may(session, "oshosts:put");
  const mayAsk = may(session, "placement:fleet") && may(session, "placement:post");
  const set = async (host: Host, reservable: boolean): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      await request("PUT", path("os-hosts", host.id), { body: { reservable } });
      setClosing(null);
      changes.tell();
      loaded.reload();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  const columns = t.fleet.columns;
  const open = facts?.hosts.filter((host) => host.reservable).length ?? 0;
  const leased = facts?.hosts.filter((host) => (held.get(host.id)?.length ?? 0) > 0).length ?? 0;
  const off = facts ? [...facts.power.values()].filter((host) => host.power === "off").length : 0;
  const failed = facts ? [...facts.status.values()].filter((status) => status === "failed").length : 0;

  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.fleet.title}</h1>
      </header>
      <div class="toolbar">
        <Search
          label={t.fleet.filter}
          value={filter}
          change={(text) => {
            setFilter(text);
            adjust(["fleet"], { find: text });
          }}
        />
        {facts && <span class="note">{t.fleet.summary(facts.hosts.length, open, leased, off, failed)}</span>}
      </div>
      {failure && !closing && <Refusal error={failure} />}
      <LoadState loaded={loaded} />
      <NothingListed
        all={facts && facts.hosts.length}
        shown={shown.length}
        title={t.calendar.noHostsTitle}
        text={t.calendar.noHosts}
        noneMatch={t.fleet.noneMatch}
        clear={() => setFilter("")}
      />
      {part.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th>{columns.host}</th>
              <th>{columns.state}</th>
              <th>{columns.lease}</th>
              <th>{columns.guests}</th>
              <th>{columns.capabilities}</th>
              <th>{columns.size}</th>
              <th>{columns.pool}</th>
              {mayClose && (
                <th>
                  <span class="visually-hidden">{t.lease.actions}</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {part.map((host) => {
              const power = facts?.power.get(host.id);
              const leases = held.get(host.id) ?? [];
              const guests = facts?.instances.get(host.hypervisor_hostname) ?? [];
              const status = facts?.status.get(host.id);
              return (
                <tr key={host.id}>
                  <td data-label={columns.host}>
                    <strong class="hostname">{host.hypervisor_hostname}</strong>
                  </td>
                  <td data-label={columns.state}>
                    {status === "failed" || status === "maintenance" ? (
                      <span class="attention">{t.calendar.hostStatus[status]}</span>
                    ) : host.reservable ? (
                      t.fleet.open
                    ) : (
                      <span class="attention">{t.fleet.closed}</span>
                    )}
                    {power && power.power !== "on" && (
                      <>
                        ,{" "}
                        <span class={power.power === "failed" ? "attention" : ""}>
                          {t.fleet.power[power.power] ?? power.power}
                        </span>
                      </>
                    )}
                  </td>
                  <td data-label={columns.lease}>
                    {leases.slice(0, 3).map((lease) => (
                      <a key={lease.id} class="in-list" href={href(["leases", lease.id])}>
                        <Name text={lease.name} />
                      </a>
                    ))}
                    {leases.length > 3 && ` + ${leases.length - 3}`}
                    {leases.length === 0 && "–"}
                  </td>
                  <td data-label={columns.guests}>
                    {guests.length}
                    {mayAsk && guests.length > 0 && (
                      <>
                        {" "}
                        <a
                          href={href(["placement", "drain"], { of: "fleet", nodes: host.hypervisor_hostname })}
                          aria-label={t.fleet.drainOf(host.hypervisor_hostname)}
                        >
                          {t.fleet.drain}
                        </a>
                      </>
                    )}
                    {guests.length > 0 && <small>{used(host, guests)}</small>}
                  </td>
                  <td data-label={columns.capabilities}>
                    <ul class="chips">
                      {capabilities(host)
                        .slice(0, 12)
                        .map(([name, value]) => (
                          <li key={name}>
                            {name}={value.slice(0, 40)}
                          </li>
                        ))}
                    </ul>
                  </td>
                  <td data-label={columns.size}>
                    {t.fleet.size(host.vcpus, gib(host.memory_mb), gib(host.local_gb * 1024))}
                  </td>
                  <td data-label={columns.pool}>{power?.pool ?? "–"}</td>
                  {mayClose && (
                    <td>
                      <button
                        type="button"
                        disabled={busy}
                        aria-label={`${host.reservable ? t.fleet.cordon : t.fleet.uncordon} ${host.hypervisor_hostname}`}
                        onClick={() => (host.reservable ? setClosing(host) : void set(host, true))}
                      >
                        {host.reservable ? t.fleet.cordon : t.fleet.uncordon}
                      </button>
                    </td>
                  )}
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {more}
      {may(session, "energy:get") && <Energy />}
      {may(session, "drift:get") && <Drift />}
      {closing && (
        <Confirm
          text={t.fleet.cordoning(closing.hypervisor_hostname)}
          verb={t.fleet.confirmCordon}
          busy={busy}
          error={failure}
          no={() => {
            setClosing(null);
            setFailure(null);
          }}
          yes={() => void set(closing, false)}
        />
      )}
    </div>
  );
}

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** Host-hours, energy use and savings of the last 7 days by pool. */
function Energy(): JSX.Element | null {
  const loaded = useLoaded<Bodies["EnergyReportBody"]>("energy", (signal) =>
    get("/v1/energy/report", { start: rfc3339(clock.now() - 7 * DAY) }, signal),
  );
  const report = loaded.data;
  if (!report || report.pools.length === 0) return null;
  const unknown = report.pools.reduce((sum, pool) => sum + pool.hosts_without_watts, 0);
  const columns = t.fleet.energyColumns;
  return (
    <section>
      <h2>{t.fleet.energy}</h2>
      {report.total_kwh > 0 && (
        <p>{t.fleet.energyText(number.format(report.total_kwh), number.format(report.saved_kwh))}</p>
      )}
      {unknown > 0 && <p class="note">{t.fleet.energyUnknown(unknown)}</p>}
      <table class="list figures">
        <thead>
          <tr>
            {Object.values(columns).map((column) => (
              <th key={column}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {report.pools.map((pool) => (
            <tr key={pool.pool_id ?? ""}>
              <th scope="row" data-label={columns.pool}>
                <Name text={pool.pool ?? ""} />
              </th>
              <td data-label={columns.busy}>{number.format(pool.busy_host_hours)}</td>
              <td data-label={columns.idle}>{number.format(pool.idle_host_hours)}</td>
              <td data-label={columns.off}>{number.format(pool.off_host_hours)}</td>
              <td data-label={columns.total}>{number.format(pool.total_kwh)}</td>
              <td data-label={columns.saved}>{number.format(pool.saved_kwh)}</td>
              <td data-label={columns.failed}>{pool.boots_failed}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Findings of `allot doctor`. They are loaded on request only, because that inspects all machines. */
function Drift(): JSX.Element {
  const { session } = useContextOf();
  const [found, setFound] = useState<Bodies["DriftEntry"][] | null>(null);
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const look = async (method: "GET" | "POST", url: string): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      setFound((await request<Bodies["DriftBody"]>(method, url)).drift);
      setAsking(false);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  const repairable = found?.filter((entry) => entry.repairable).length ?? 0;
  return (
    <section>
      <h2>{t.fleet.drift}</h2>
      {failure && !asking && <Refusal error={failure} />}
      {found?.length === 0 && <p class="ok">{t.fleet.driftNone}</p>}
      {found && found.length > 0 && (
        <>
          <ul>
            {found.slice(0, 200).map((entry, at) => (
              <li key={at}>
                <strong>{entry.kind.replaceAll("_", " ")}</strong>: {entry.message}
              </li>
            ))}
          </ul>
          {repairable < found.length && <p class="note">{t.fleet.driftLeft}</p>}
        </>
      )}
      <div class="row">
        <button type="button" disabled={busy} onClick={() => void look("GET", "/v1/drift")}>
          {busy ? t.fleet.driftChecking : t.fleet.driftCheck}
        </button>
        {repairable > 0 && may(session, "drift:repair") && (
          <button type="button" disabled={busy} onClick={() => setAsking(true)}>
            {t.fleet.driftRepair}
          </button>
        )}
      </div>
      {asking && (
        <Confirm
          text={t.fleet.driftRepairing(repairable)}
          verb={t.fleet.driftRepair}
          busy={busy}
          error={failure}
          no={() => {
            setAsking(false);
            setFailure(null);
          }}
          yes={() => void look("POST", "/v1/drift/repair")}
        />
      )}
    </section>
  );
}
