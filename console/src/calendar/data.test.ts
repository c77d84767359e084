import { describe, expect, it } from "vitest";
import { readCalendar } from "./data";

const at = (hour: number): string => `2030-01-02T${String(hour).padStart(2, "0")}:00:00Z`;
const lease = (id: string) => ({
  id,
  name: id,
  project_id: "p",
  status: "ACTIVE",
  start_date: at(1),
  end_date: at(5),
  mine: false,
});
const bar = (kind: string, start: number, end: number | null, more: object = {}) => ({
  kind,
  start: at(start),
  end: end === null ? null : at(end),
  lease: null,
  instances: null,
  whole: true,
  ...more,
});
const page = (hosts: object[], leases: object[], next: string | null = null) =>
  ({ start: at(0), end: at(23), now: at(2), revision: "1", bucket_minutes: null, hosts, leases, next }) as never;
const host = (id: string, bars: object[]) => ({
  id,
  name: id,
  pool: "p",
  group: null,
  status: "open",
  power: "on",
  bars,
});

describe("a calendar", () => {
  it("is read from its pages, with a lease that is on several only once", () => {
    const calendar = readCalendar([
      page([host("1", [bar("lease", 1, 5, { lease: 0 })])], [lease("a")], "1"),
      page([host("2", [bar("lease", 1, 5, { lease: 1 })])], [lease("b"), lease("a")]),
    ]);
    expect(calendar?.hosts.map((found) => found.bars.items[0]?.lease?.id)).toEqual(["a", "a"]);
    expect(calendar?.leases.map((found) => found.id)).toEqual(["a", "b"]);
    expect(calendar?.more).toBe(false);
  });
  it("gives bars that overlap lanes, and preemptible instances none", () => {
    const [found] =
      readCalendar([
        page(
          [host("1", [bar("instance", 1, 4), bar("instance", 2, null), bar("preemptible", 1, 9), bar("lease", 5, 6)])],
          [],
        ),
      ])?.hosts ?? [];
    const lanes = found?.bars.items.map((item) => [item.kind, item.lane, item.lanes]);
    expect(lanes).toEqual([
      ["instance", 0, 2],
      ["preemptible", 0, 1],
      ["instance", 1, 2],
      ["lease", 0, 2],
    ]);
    expect(found?.bars.items[2]?.end).toBe(Infinity);
  });
  it("may have nothing in it", () => {
    expect(readCalendar([])).toBeNull();
    expect(readCalendar([page([], [])])?.hosts).toEqual([]);
  });
});
