// Instances, with the time at which each preemptible one is expected to leave.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { clock, get, type Instance } from "./api/client";
import { parse, stamp } from "./calendar/zone";
import { loadLeases } from "./leases";
import { gib, LoadState, Name, NothingListed, Project, Search, Status, Time, usePart } from "./parts";
import { adjust, href, type Route } from "./route";
import { useContextOf, useLoaded, useNow } from "./state";
import { t } from "./texts";

export function InstancesView({ route }: { route: Route }): JSX.Element {
  const { zone, names: known } = useContextOf();
  const now = useNow(() => clock.now(), 5000);
  const [filter, setFilter] = useState(route.query.get("find") ?? "");
  const loaded = useLoaded<{ instances: Instance[] }>("instances", (signal) => get("/v1/instances", {}, signal));
  const leases = useLoaded("leases", loadLeases);
  const names = new Map(leases.data?.items.map((lease) => [lease.id, lease.name]));
  const items = loaded.data?.instances ?? [];
  const wanted = filter.trim().toLowerCase();
  const shown = items.filter(
    (instance) =>
      !wanted ||
      [
        instance.name,
        instance.project_id,
        known.projects[instance.project_id] ?? "",
        instance.host ?? "",
      ].some((text) => text.toLowerCase().includes(wanted)),
  );
  const [part, more] = usePart(shown);
  const columns = t.instances.columns;
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.instances.title}</h1>
      </header>
      <div class="toolbar">
        <Search
          label={t.instances.filter}
          value={filter}
          change={(text) => {
            setFilter(text);
            adjust(["instances"], { find: text });
          }}
        />
      </div>
      <LoadState loaded={loaded} />
      <NothingListed
        all={loaded.data && items.length}
        shown={shown.length}
        title={t.instances.noneTitle}
        text={t.instances.none}
        noneMatch={t.instances.noneMatch}
        clear={() => setFilter("")}
      />
      {part.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              {Object.values(columns).map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {part.map((instance) => (
              <tr key={instance.id}>
                <td data-label={columns.name}>
                  <Name text={instance.name} />
                </td>
                <td data-label={columns.project}>
                  <Project id={instance.project_id} />
                </td>
                <td data-label={columns.kind}>{t.instances.kinds[instance.kind] ?? instance.kind}</td>
                <td data-label={columns.status}>
                  <Status status={instance.status} />
                  {instance.status_reason && <small> {instance.status_reason}</small>}
                </td>
                <td data-label={columns.host}>{instance.host ?? "–"}</td>
                <td data-label={columns.size}>
                  {instance.vcpus} vCPU, {gib(instance.memory_mb)}
                </td>
                <td data-label={columns.safe}>
                  {instance.kind === "preemptible" ? <Safe instance={instance} now={now} zone={zone} /> : "–"}
                </td>
                <td data-label={columns.lease}>
                  {instance.lease_id ? (
                    <a href={href(["leases", instance.lease_id])}>
                      <Name text={names.get(instance.lease_id) ?? t.openPage} />
                    </a>
                  ) : (
                    "–"
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {more}
    </div>
  );
}

function Safe({ instance, now, zone }: { instance: Instance; now: number; zone: string }): JSX.Element {
  const departure = instance.departure;
  const until = parse(instance.safe_until);
  return (
    <>
      {Number.isNaN(until) ? t.instances.forever : <Time at={until} now={now} />}
      {departure && (
        <small>
          {" "}
          {t.instances.leaving(stamp(parse(departure.asked_at), zone))}
          {departure.moves
            ? `, ${t.instances.moves}`
            : `, ${t.instances.gone(stamp(parse(departure.gone_by), zone))}`}
        </small>
      )}
    </>
  );
}
