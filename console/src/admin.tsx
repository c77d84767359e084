// The operators' view: pools, preemptible projects, the waitlist, held offers, settings and the audit log.

import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import {
  ApiError,
  type Bodies,
  clock,
  get,
  type Host,
  type Instance,
  type Offer,
  path,
  period,
  request,
} from "./api/client";
import { parse, stamp } from "./calendar/zone";
import { loadLeases } from "./leases";
import { LoadState, Name, Project, Refusal, Search, Time, shorten, User, usePart, whatOfLease } from "./parts";
import { href } from "./route";
import { changes, type Loaded, may, useContextOf, useLoaded, useNow } from "./state";
import { t } from "./texts";

export function AdminView(): JSX.Element {
  const { session } = useContextOf();
  const names = useNamesOfThings();
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.admin.title}</h1>
      </header>
      <Pools />
      <LeasePools names={names} />
      <PreemptibleProjects />
      <Waitlist />
      <OffersHeld />
      {may(session, "settings:get") && <Settings />}
      <Audit names={names} />
    </div>
  );
}

function Part<T>({
  title,
  loaded,
  children,
}: {
  title: string;
  loaded: Loaded<T>;
  children: (data: T) => ComponentChildren;
}): JSX.Element {
  return (
    <section>
      <h2>{title}</h2>
      <LoadState loaded={loaded} />
      {loaded.data && children(loaded.data)}
    </section>
  );
}

function Table({ columns, children }: { columns: string[]; children: ComponentChildren }): JSX.Element {
  return (
    <table class="list">
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column}>{column || <span class="visually-hidden">{t.lease.actions}</span>}</th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

/** Names by key: the ID of a lease, `host ID` or `instance ID`. */
type Names = ReadonlyMap<string, string>;

function useNamesOfThings(): Names {
  const { session } = useContextOf();
  const leases = useLoaded("leases", loadLeases).data;
  const hosts = useLoaded<{ hosts: Host[] }>(may(session, "oshosts:get") ? "hosts" : null, (signal) =>
    get("/v1/os-hosts", {}, signal),
  ).data;
  const instances = useLoaded<{ instances: Instance[] }>("instances", (signal) =>
    get("/v1/instances", {}, signal),
  ).data;
  return useMemo(() => {
    const names = new Map<string, string>();
    for (const lease of leases?.items ?? []) names.set(lease.id, lease.name);
    for (const host of hosts?.hosts ?? []) names.set(`host ${host.id}`, host.hypervisor_hostname);
    for (const instance of instances?.instances ?? []) names.set(`instance ${instance.id}`, instance.name);
    return names;
  }, [leases, hosts, instances]);
}

function Thing({ id, name }: { id: string; name: string | undefined }): JSX.Element {
  return name ? (
    <bdi class="name" title={id.slice(0, 1000)}>
      {shorten(name)}
    </bdi>
  ) : (
    <code>{id.slice(0, 36)}</code>
  );
}

function LeaseLink({ id, name }: { id: string; name: string | undefined }): JSX.Element {
  return (
    <a href={href(["leases", id])}>
      <Thing id={id} name={name} />
    </a>
  );
}

function Pools(): JSX.Element {
  const loaded = useLoaded<Bodies["FreePoolsBody"]>("pools", (signal) => get("/v1/freepools", {}, signal));
  const columns = t.admin.poolColumns;
  return (
    <Part title={t.admin.pools} loaded={loaded}>
      {({ freepools }) => (
        <Table columns={Object.values(columns)}>
          {freepools.map((pool) => (
            <tr key={pool.id}>
              <td data-label={columns.name}>
                <Name text={pool.name} />
              </td>
              <td data-label={columns.hosts}>{pool.hosts}</td>
              <td data-label={columns.end}>
                {pool.end_action ? (t.lease.endActions[pool.end_action] ?? pool.end_action) : "–"}
              </td>
              <td data-label={columns.specs}>
                {Object.entries(pool.extra_specs)
                  .map(([name, value]) => `${name}=${String(value)}`)
                  .join(", ")
                  .slice(0, 200) || "–"}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Part>
  );
}

function LeasePools({ names }: { names: Names }): JSX.Element {
  const loaded = useLoaded<Bodies["LeasePoolsBody"]>("leasepools", (signal) => get("/v1/leasepools", {}, signal));
  const columns = t.admin.leasePoolColumns;
  const [part, more] = usePart(loaded.data?.leasepools ?? [], 50);
  return (
    <Part title={t.admin.leasePools} loaded={loaded}>
      {({ leasepools }) =>
        leasepools.length === 0 ? (
          <p class="note">{t.admin.noLeasePools}</p>
        ) : (
          <>
            <Table columns={Object.values(columns)}>
              {part.map((pool) => (
                <tr key={pool.id}>
                  <td data-label={columns.name}>
                    {pool.name === pool.id ? <code>{pool.id.slice(0, 36)}</code> : <Name text={pool.name} />}
                  </td>
                  <td data-label={columns.project}>
                    <Project id={pool.project_id} />
                  </td>
                  <td data-label={columns.hosts}>{pool.hosts}</td>
                  <td data-label={columns.lease}>
                    <LeaseLink id={pool.lease_id} name={names.get(pool.lease_id)} />
                  </td>
                  <td data-label={columns.ratios}>
                    {pool.cpu_allocation_ratio || pool.ram_allocation_ratio
                      ? t.admin.ratios(String(pool.cpu_allocation_ratio ?? 1), String(pool.ram_allocation_ratio ?? 1))
                      : "–"}
                  </td>
                </tr>
              ))}
            </Table>
            {more}
          </>
        )
      }
    </Part>
  );
}

function PreemptibleProjects(): JSX.Element | null {
  const { session, zone } = useContextOf();
  const known = may(session, "preemptible_projects:get");
  const loaded = useLoaded<Bodies["PreemptibleProjectsBody"]>(known ? "preemptible-projects" : null, (signal) =>
    get("/v1/preemptible/projects", {}, signal),
  );
  const columns = t.admin.preemptibleColumns;
  if (!known) return null;
  return (
    <Part title={t.admin.preemptible} loaded={loaded}>
      {({ projects }) =>
        projects.length === 0 ? (
          <p class="note">{t.admin.noPreemptible}</p>
        ) : (
          <Table columns={Object.values(columns)}>
            {projects.map((project) => (
              <tr key={project.pattern}>
                <td data-label={columns.pattern}>
                  <Name text={project.pattern} />
                </td>
                <td data-label={columns.since}>
                  {project.created_at ? stamp(parse(project.created_at), zone) : t.admin.bySettings}
                </td>
              </tr>
            ))}
          </Table>
        )
      }
    </Part>
  );
}

/** A button that deletes the object at `url`, with the error if that fails. */
function Remove({ url, verb, label }: { url: string; verb: string; label: string }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const remove = async (): Promise<void> => {
    setBusy(true);
    try {
      await request("DELETE", url);
      changes.tell();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <>
      {failure && <Refusal error={failure} />}
      <button type="button" disabled={busy} aria-label={`${verb}: ${label.slice(0, 60)}`} onClick={() => void remove()}>
        {verb}
      </button>
    </>
  );
}

function Waitlist(): JSX.Element {
  const { zone } = useContextOf();
  const loaded = useLoaded<Bodies["WaitlistBody"]>("waitlist", (signal) => get("/v1/waitlist", {}, signal));
  const columns = t.admin.waitColumns;
  return (
    <Part title={t.admin.waitlist} loaded={loaded}>
      {({ waitlist }) =>
        waitlist.length === 0 ? (
          <p class="note">{t.admin.noWaiting}</p>
        ) : (
          <Table columns={[...Object.values(columns), ""]}>
            {waitlist.map((entry) => (
              <tr key={entry.id}>
                <td data-label={columns.place}>{entry.place}</td>
                <td data-label={columns.name}>
                  <Name text={entry.lease.name} />
                </td>
                <td data-label={columns.project}>
                  <Project id={entry.lease.project_id} />
                </td>
                <td data-label={columns.what}>{whatOfLease(entry.lease)}</td>
                <td data-label={columns.until}>{stamp(parse(entry.expires_at), zone)}</td>
                <td>
                  <Remove url={path("waitlist", entry.id)} verb={t.admin.withdraw} label={entry.lease.name} />
                </td>
              </tr>
            ))}
          </Table>
        )
      }
    </Part>
  );
}

function OffersHeld(): JSX.Element {
  const { zone } = useContextOf();
  const loaded = useLoaded<{ offers: Offer[] }>("offers", (signal) => get("/v1/offers", {}, signal));
  const columns = t.admin.offerColumns;
  return (
    <Part title={t.admin.offers} loaded={loaded}>
      {({ offers }) =>
        offers.length === 0 ? (
          <p class="note">{t.admin.noOffers}</p>
        ) : (
          <Table columns={[...Object.values(columns), ""]}>
            {offers.map((offer) => {
              const { start, end } = period(offer.lease);
              return (
                <tr key={offer.id}>
                  <td data-label={columns.kind}>
                    {t.form.offers[offer.kind] ?? offer.kind}: {whatOfLease(offer.lease)}
                  </td>
                  <td data-label={columns.project}>
                    <Project id={offer.lease.project_id} />
                  </td>
                  <td data-label={columns.period}>
                    {stamp(start, zone)} – {stamp(end, zone)}
                  </td>
                  <td data-label={columns.until}>{stamp(parse(offer.expires_at), zone)}</td>
                  <td>
                    {offer.id && (
                      <Remove url={path("offers", offer.id)} verb={t.admin.decline} label={offer.lease.name} />
                    )}
                  </td>
                </tr>
              );
            })}
          </Table>
        )
      }
    </Part>
  );
}

/** Renders text between backquotes as code. */
const withCode = (text: string): ComponentChildren =>
  text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));

/** Settings and limits. Read-only, because the service reads them at startup. */
function Settings(): JSX.Element {
  const loaded = useLoaded<Bodies["SettingsBody"]>("settings", (signal) => get("/v1/settings", {}, signal));
  const [text, setText] = useState("");
  const [all, setAll] = useState(false);
  const wanted = text.trim().toLowerCase();
  const matches = (setting: Bodies["Setting"]): boolean =>
    (all || wanted !== "" || setting.value !== setting.default) &&
    (!wanted ||
      [setting.key, setting.description, setting.value ?? ""].some((part) => part.toLowerCase().includes(wanted)));
  const columns = t.admin.settingColumns;
  return (
    <Part title={t.admin.settings} loaded={loaded}>
      {({ settings }) => {
        const shown = settings.filter(matches);
        return (
          <>
            <p class="note">{t.admin.settingsAbout}</p>
            <div class="toolbar">
              <Search label={t.admin.settingsFilter} value={text} change={setText} />
              <label>
                <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} />{" "}
                {t.admin.settingsAll(settings.length)}
              </label>
            </div>
            {shown.length === 0 ? (
              <p class="note">{wanted ? t.admin.settingsNoMatch : t.admin.settingsNone}</p>
            ) : (
              <Table columns={Object.values(columns)}>
                {shown.map((setting) => (
                  <tr key={setting.key}>
                    <td data-label={columns.key}>
                      <code>{setting.key}</code>
                    </td>
                    <td data-label={columns.value}>
                      {setting.value === null ? t.admin.settingNothing : <code>{setting.value}</code>}
                      {setting.value !== setting.default && (
                        <small>{t.admin.settingDefault(setting.default, t.admin.settingSources[setting.source])}</small>
                      )}
                    </td>
                    <td data-label={columns.about}>{withCode(setting.description)}</td>
                  </tr>
                ))}
              </Table>
            )}
          </>
        );
      }}
    </Part>
  );
}

function Audit({ names }: { names: Names }): JSX.Element {
  const now = useNow(() => clock.now(), 5000);
  const [limit, setLimit] = useState(50);
  const loaded = useLoaded<Bodies["AuditBody"]>(`audit ${limit}`, (signal) => get("/v1/audit", { limit }, signal));
  const columns = t.admin.auditColumns;
  return (
    <Part title={t.admin.audit} loaded={loaded}>
      {({ audit }) =>
        audit.length === 0 ? (
          <p class="note">{t.admin.noAudit}</p>
        ) : (
          <>
            <Table columns={Object.values(columns)}>
              {audit.map((entry) => (
                <tr key={entry.number}>
                  <td data-label={columns.time}>
                    <Time at={parse(entry.timestamp)} now={now} />
                  </td>
                  <td data-label={columns.user}>
                    <User id={entry.user_id} />
                  </td>
                  <td data-label={columns.project}>
                    <Project id={entry.project_id} />
                  </td>
                  <td data-label={columns.action}>{entry.action}</td>
                  <td data-label={columns.object}>
                    {entry.action.startsWith("lease.") ? (
                      <LeaseLink id={entry.object_id} name={names.get(entry.object_id)} />
                    ) : (
                      <Thing
                        id={entry.object_id}
                        name={names.get(`${entry.action.split(".")[0]} ${entry.object_id}`)}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </Table>
            {audit.length >= limit && limit < 1000 && (
              <button type="button" onClick={() => setLimit(limit + 200)}>
                {t.more(200)}
              </button>
            )}
          </>
        )
      }
    </Part>
  );
}
