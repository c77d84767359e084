// The calendar as the views use it, with times in milliseconds and an index of each host's bars.

import { answer, clock, type Query, type Tagged } from "../api/client";
import { type Interval, IntervalIndex, lanes } from "./geometry";
import { parse, rfc3339 } from "./zone";

export type Kind = "lease" | "offer" | "maintenance" | "instance" | "preemptible" | "other";

export interface CalendarLease extends Interval {
  id: string;
  name: string;
  project: string;
  status: string;
  mine: boolean;
}

export interface Bar extends Interval {
  kind: Kind;
  lease: CalendarLease | null;
  instances: number | null;
  /** Whether the bar takes the whole host. */
  whole: boolean;
  lane: number;
  lanes: number;
}

export interface CalendarHost {
  id: string;
  name: string | null;
  /** Null if the caller isn't allowed to see pools. */
  pool: string | null;
  group: string | null;
  status: "open" | "closed" | "failed" | "maintenance" | "deleted";
  power: "on" | "off" | null;
  bars: IntervalIndex<Bar>;
  buckets: number[] | null;
}

export interface Calendar extends Interval {
  now: number;
  hosts: CalendarHost[];
  leases: CalendarLease[];
  bucketMinutes: number | null;
  /** Whether the fleet has more hosts than `hosts`. */
  more: boolean;
}

interface WireBar {
  kind: Kind;
  start: string;
  end: string | null;
  lease: number | null;
  instances: number | null;
  whole: boolean;
}

interface WireCalendar {
  start: string;
  end: string;
  now: string;
  bucket_minutes: number | null;
  hosts: (Omit<CalendarHost, "bars" | "buckets"> & { bars?: WireBar[]; buckets?: number[] })[];
  leases: {
    id: string;
    name: string;
    project_id: string;
    status: string;
    start_date: string;
    end_date: string;
    mine: boolean;
  }[];
  next: string | null;
}

/** Maximum number of hosts to show. */
export const MOST_HOSTS = 5000;
const PAGE = 1000;

const SHARED: ReadonlySet<Kind> = new Set(["preemptible"]);

function host(wire: WireCalendar["hosts"][number], leases: CalendarLease[]): CalendarHost {
  const bars = (wire.bars ?? []).map((bar): Bar => ({
    kind: bar.kind,
    start: parse(bar.start),
    end: bar.end === null ? Infinity : parse(bar.end),
    lease: bar.lease === null ? null : (leases[bar.lease] ?? null),
    instances: bar.instances,
    whole: bar.whole,
    lane: 0,
    lanes: 1,
  }));
  // Preemptible instances are a line at the foot of the row. All other bars split its height if they overlap.
  const drawn = bars.filter((bar) => !SHARED.has(bar.kind));
  const groups = new IntervalIndex(drawn);
  const placed = lanes(drawn);
  drawn.forEach((bar, at) => {
    bar.lane = placed.lane[at] ?? 0;
  });
  for (const bar of drawn)
    bar.lanes = 1 + Math.max(0, ...groups.between(bar.start, bar.end).map((other) => other.lane));
  return { ...wire, bars: new IntervalIndex(bars), buckets: wire.buckets ?? null };
}

export function readCalendar(pages: WireCalendar[]): Calendar | null {
  const [first] = pages;
  if (!first) return null;
  const known = new Map<string, CalendarLease>();
  const hosts: CalendarHost[] = [];
  for (const page of pages) {
    const leases = page.leases.map((lease): CalendarLease => {
      const read = known.get(lease.id) ?? {
        id: lease.id,
        name: lease.name,
        project: lease.project_id,
        status: lease.status,
        start: parse(lease.start_date),
        end: parse(lease.end_date),
        mine: lease.mine,
      };
      known.set(lease.id, read);
      return read;
    });
    hosts.push(...page.hosts.map((wire) => host(wire, leases)));
  }
  return {
    start: parse(first.start),
    end: parse(first.end),
    now: parse(first.now),
    hosts,
    leases: [...known.values()],
    bucketMinutes: first.bucket_minutes,
    more: Boolean(pages[pages.length - 1]?.next),
  };
}

/** Pages of the last load by query, for revalidation. */
let loaded = new Map<string, Tagged>();
export function forgetCalendar(): void {
  loaded = new Map();
}

export async function loadCalendar(
  window: Interval,
  groupBy: string,
  bucket: number | null,
  signal: AbortSignal,
): Promise<Calendar | null> {
  const pages: WireCalendar[] = [];
  const next = new Map<string, Tagged>();
  let hosts = 0;
  let marker: string | null = null;
  do {
    const query: Query = {
      start: rfc3339(window.start),
      end: rfc3339(window.end),
      group_by: groupBy,
      bucket,
      limit: PAGE,
      marker,
    };
    const key = JSON.stringify(query);
    const page: Tagged = await answer("GET", "/v1/calendar", { query, signal, known: loaded.get(key) });
    next.set(key, page);
    const { calendar } = page.body as { calendar: WireCalendar };
    pages.push(calendar);
    hosts += calendar.hosts.length;
    marker = calendar.next;
  } while (marker && hosts < MOST_HOSTS);
  if (!signal.aborted) loaded = next;
  const calendar = readCalendar(pages);
  if (calendar) clock.hear(calendar.now);
  return calendar;
}
