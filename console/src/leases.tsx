// The list of leases.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { all, clock, type Lease, period } from "./api/client";
import { LoadState, Name, NothingListed, Project, Search, Status, Time, usePart, whatOfLease } from "./parts";
import { adjust, href, type Route } from "./route";
import { may, useContextOf, useLoaded, useNow } from "./state";
import { t } from "./texts";

const MOST = 20_000;

export const loadLeases = (): Promise<{ items: Lease[]; more: boolean }> =>
  all<Lease>("/v1/leases", "leases", {}, MOST);

const OVER = new Set(["TERMINATED", "DELETING"]);

export function LeasesView({ route }: { route: Route }): JSX.Element {
  const { session, names } = useContextOf();
  const now = useNow(() => clock.now(), 5000);
  const [filter, setFilter] = useState(route.query.get("find") ?? "");
  const [status, setStatus] = useState(route.query.get("status") ?? "current");
  const loaded = useLoaded("leases", loadLeases);
  const remember = (find: string, of: string): void => {
    setFilter(find);
    setStatus(of);
    adjust(["leases"], { find, status: of === "current" ? null : of });
  };
  const items = loaded.data?.items ?? [];
  const shown = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    return items
      .filter((lease) =>
        status === "all" ? true : status === "current" ? !OVER.has(lease.status) : lease.status === status,
      )
      .filter(
        (lease) =>
          !wanted ||
          [lease.name, lease.project_id, names.projects[lease.project_id] ?? ""].some((text) =>
            text.toLowerCase().includes(wanted),
          ),
      )
      .sort((one, other) => period(one).start - period(other).start);
  }, [items, filter, status]);
  const [part, more] = usePart(shown);
  const statuses = [...new Set(items.map((lease) => lease.status))].sort();
  const columns = t.leases.columns;

  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.leases.title}</h1>
        {may(session, "leases:post") && (
          <a class="button primary" href={href(["leases", "new"])}>
            {t.newLease}
          </a>
        )}
      </header>
      <div class="toolbar">
        <Search label={t.leases.filter} value={filter} change={(text) => remember(text, status)} />
        <label>
          {t.leases.status}{" "}
          <select value={status} onChange={(event) => remember(filter, event.currentTarget.value)}>
            <option value="current">{t.leases.current}</option>
            <option value="all">{t.leases.all}</option>
            {statuses.map((name) => (
              <option key={name} value={name}>
                {t.status(name)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <LoadState loaded={loaded} />
      <NothingListed
        all={loaded.data && items.length}
        shown={shown.length}
        title={t.leases.noneTitle}
        text={t.leases.none}
        noneMatch={t.leases.noneMatch}
        clear={() => remember("", "all")}
      />
      {part.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th>{columns.name}</th>
              <th>{columns.project}</th>
              <th>{columns.status}</th>
              <th>{columns.start}</th>
              <th>{columns.end}</th>
              <th>{columns.what}</th>
            </tr>
          </thead>
          <tbody>
            {part.map((lease) => {
              const { start, end } = period(lease);
              return (
                <tr key={lease.id}>
                  <td data-label={columns.name}>
                    <a href={href(["leases", lease.id])}>
                      <Name text={lease.name} />
                    </a>
                  </td>
                  <td data-label={columns.project}>
                    <Project id={lease.project_id} />
                  </td>
                  <td data-label={columns.status}>
                    <Status status={lease.status} degraded={lease.degraded} />
                  </td>
                  <td data-label={columns.start}>
                    <Time at={start} now={now} />
                  </td>
                  <td data-label={columns.end}>
                    <Time at={end} now={now} />
                  </td>
                  <td data-label={columns.what}>{whatOfLease(lease)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {more}
      {loaded.data?.more && <p class="footnote">{t.leases.more(MOST)}</p>}
    </div>
  );
}
