// A list of leases, which replaces the calendar on phones.

import type { JSX } from "preact";
import { clock, type Lease, period } from "../api/client";
import { loadLeases } from "../leases";
import { Empty, LoadState, Name, Project, Status, whatOfLease } from "../parts";
import { href } from "../route";
import { useContextOf, useLoaded, useNow } from "../state";
import { t } from "../texts";
import { length, stamp } from "./zone";

/** Leases of the caller's project that have not ended. If it has none, all leases that the caller can see. */
export function Cards(): JSX.Element {
  const now = useNow(() => clock.now(), 5000);
  const { zone, session } = useContextOf();
  const loaded = useLoaded("leases", loadLeases);
  const current = (loaded.data?.items ?? [])
    .filter((lease) => lease.status !== "TERMINATED")
    .sort((one, other) => period(one).start - period(other).start);
  const mine = current.filter((lease) => lease.project_id === session.project_id);
  const shown = mine.length > 0 ? mine : current;
  return (
    <div class="page">
      <p>{mine.length > 0 ? t.calendar.narrow : t.calendar.narrowAll}</p>
      <p>
        <a class="button primary" href={href(["leases", "new"])}>
          {t.newLease}
        </a>
      </p>
      <LoadState loaded={loaded} />
      {loaded.data && shown.length === 0 && (
        <Empty title={t.calendar.nothingMine}>
          <p>{t.leases.none}</p>
        </Empty>
      )}
      <ul class="cards">
        {shown.slice(0, 100).map((lease) => (
          <LeaseCard key={lease.id} lease={lease} now={now} zone={zone} />
        ))}
      </ul>
    </div>
  );
}

function LeaseCard({ lease, now, zone }: { lease: Lease; now: number; zone: string }): JSX.Element {
  const { start, end } = period(lease);
  return (
    <li>
      <a href={href(["leases", lease.id])}>
        <strong>
          <Name text={lease.name} />
        </strong>{" "}
        <Status status={lease.status} degraded={lease.degraded} />
        <span>
          {whatOfLease(lease)} · <Project id={lease.project_id} />
        </span>
        <span>
          {stamp(start, zone)} – {stamp(end, zone)}
        </span>
        <span>
          {now < start ? t.calendar.startsIn(length(start - now)) : t.calendar.endsIn(length(end - now))}
        </span>
      </a>
    </li>
  );
}
