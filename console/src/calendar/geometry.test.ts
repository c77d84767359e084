import { describe, expect, it } from "vitest";
import * as geometry from "./geometry";
import { DAY, HOUR, IntervalIndex, MINUTE, type Scale } from "./geometry";
import { clock, forInput, fromInput, fromWall, length, parse, relative, rfc3339, stamp, toWall } from "./zone";

const at = (text: string): number => Date.parse(text);
const scale: Scale = { start: at("2026-11-25T00:00:00Z"), end: at("2026-11-26T00:00:00Z"), width: 1440 };

describe("a scale", () => {
  it("maps times to pixels and back", () => {
    expect(geometry.xOf(scale, at("2026-11-25T12:00:00Z"))).toBe(720);
    expect(geometry.timeAt(scale, 60)).toBe(at("2026-11-25T01:00:00Z"));
  });
  it("pans by pixels", () => {
    expect(geometry.pan(scale, -60).start).toBe(at("2026-11-24T23:00:00Z"));
  });
  it("zooms around the pointer, from an hour to a year", () => {
    const near = geometry.zoom(scale, 0.5, 720);
    expect(geometry.timeAt(near, 720)).toBe(geometry.timeAt(scale, 720));
    expect(near.end - near.start).toBe(12 * HOUR);
    const nearest = geometry.zoom(scale, 1e-9, 0);
    expect(nearest.end - nearest.start).toBe(HOUR);
    const farthest = geometry.zoom(scale, 1e9, 1440);
    expect(farthest.end - farthest.start).toBe(geometry.WIDEST);
    expect(farthest.end).toBe(scale.end);
  });
  it("snaps drafts to quarters of an hour, and to minutes when zoomed in", () => {
    const time = at("2026-11-25T01:07:40Z");
    expect(geometry.snap(scale, time)).toBe(at("2026-11-25T01:15:00Z"));
    expect(geometry.snap({ ...scale, end: scale.start + HOUR }, time)).toBe(at("2026-11-25T01:08:00Z"));
  });
  it("loads whole days around what is shown, never more than the API answers", () => {
    expect(geometry.loadWindow(scale)).toEqual({ start: at("2026-11-24T00:00Z"), end: at("2026-11-27T00:00Z") });
    const year = geometry.loadWindow(geometry.zoom(scale, 1e9, 0));
    expect(year.end - year.start).toBeLessThanOrEqual(400 * DAY);
    expect(year.start < scale.start && year.end > scale.start + geometry.WIDEST).toBe(true);
  });
  it("asks for buckets only where many hosts are shown for long", () => {
    const quarter = { ...scale, end: scale.start + 90 * DAY };
    expect(geometry.bucketMinutes(scale, 2000)).toBeNull();
    expect(geometry.bucketMinutes(quarter, 24)).toBeNull();
    expect(geometry.bucketMinutes(quarter, 2000)).toBe(360);
  });
});

describe("ticks", () => {
  it("are hours of a day, with its name at midnight", () => {
    const found = geometry.ticks(scale, "UTC");
    expect(found.map((tick) => tick.label).slice(0, 3)).toEqual(["Wed 25 Nov", "03:00", "06:00"]);
    expect(found[0]?.major).toBe(true);
  });
  it("are at whole hours of the zone, on both sides of a change of clocks", () => {
    const change: Scale = { start: at("2026-10-24T22:00:00Z"), end: at("2026-10-25T23:00:00Z"), width: 500 };
    const found = geometry.ticks(change, "Europe/Paris");
    expect(found.every((tick) => clock(tick.time, "Europe/Paris").endsWith(":00"))).toBe(true);
    expect(found[0]?.label).toBe("Sun 25 Oct");
    expect(found[1]?.time).toBe(at("2026-10-25T05:00:00Z"));
  });
  it("never crowd, at any zoom", () => {
    for (let factor = 1; factor < 400; factor *= 1.3) {
      const wide = geometry.zoom({ ...scale, end: scale.start + HOUR }, factor * 20, 0);
      const found = geometry.ticks(wide, "America/New_York");
      expect(found.length).toBeGreaterThan(0);
      for (let index = 1; index < found.length; index += 1) {
        const gap = geometry.xOf(wide, found[index]!.time) - geometry.xOf(wide, found[index - 1]!.time);
        expect(gap).toBeGreaterThan(45);
      }
    }
  });
  it("are months where days are too narrow", () => {
    const year: Scale = { start: at("2026-01-15T00:00Z"), end: at("2027-01-15T00:00Z"), width: 1000 };
    const found = geometry.ticks(year, "UTC");
    expect(found[0]?.label).toBe("Feb 2026");
    expect(found).toHaveLength(12);
  });
});

describe("an index of intervals", () => {
  it("finds the same as looking at all of them", () => {
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 48271) % 2147483647) % below;
    const items = Array.from({ length: 300 }, () => {
      const start = random(1000);
      return { start, end: random(20) === 0 ? Infinity : start + 1 + random(60) };
    });
    const index = new IntervalIndex(items);
    for (let round = 0; round < 200; round += 1) {
      const start = random(1100);
      const end = start + 1 + random(50);
      const expected = items.filter((item) => item.start < end && item.end > start).length;
      expect(index.between(start, end)).toHaveLength(expected);
    }
  });
  it("is empty where there is nothing", () => {
    expect(new IntervalIndex([]).between(0, 1)).toEqual([]);
  });
});

describe("rows", () => {
  const { rows, height } = geometry.stack([{ height: 28 }, { height: 24 }, { height: 24 }, { height: 16 }]);
  it("lie below each other", () => {
    expect(rows.map((row) => row.top)).toEqual([0, 28, 52, 76]);
    expect(height).toBe(92);
  });
  it("are found by height", () => {
    expect([-1, 0, 27, 28, 91, 92].map((y) => geometry.rowAt(rows, y))).toEqual([-1, 0, 0, 1, 3, -1]);
  });
  it("are drawn only where they are visible", () => {
    expect(geometry.visible(rows, 30, 30)).toEqual([1, 3]);
    expect(geometry.visible(rows, 0, 1000)).toEqual([0, 4]);
    expect(geometry.visible([], 0, 100)).toEqual([0, 0]);
  });
});

describe("bars that overlap", () => {
  it("lie in lanes, and those that do not share one", () => {
    const found = geometry.lanes([
      { start: 0, end: 10 },
      { start: 5, end: 15 },
      { start: 10, end: 20 },
    ]);
    expect(found).toEqual({ lane: [0, 1, 0], count: 2 });
  });
  it("count a host once", () => {
    const host = [
      { start: 0, end: 10 },
      { start: 5, end: 15 },
    ];
    const other = [{ start: 8, end: Infinity }];
    expect(geometry.occupancy([host, other], 0, 20)).toEqual([
      [0, 1],
      [8, 2],
      [10, 2],
      [15, 1],
    ]);
  });
});

describe("hues", () => {
  it("differ as long as there are enough, and are the same every time", () => {
    const projects = Array.from({ length: 12 }, (_, at) => `project-${at}`);
    const found = geometry.hues(projects);
    expect(new Set([...found.values()].map((value) => value.hue)).size).toBe(12);
    expect(geometry.hues([...projects].reverse())).toEqual(found);
    expect(geometry.hues(Array.from({ length: 40 }, (_, at) => `p${at}`)).size).toBe(40);
  });
});

describe("time", () => {
  it("is read in all forms of the API", () => {
    const expected = at("2030-01-02T10:00:00Z");
    for (const text of ["2030-01-02T10:00:00.000000", "2030-01-02 10:00:00", "2030-01-02T10:00:00Z"]) {
      expect(parse(text)).toBe(expected);
    }
    expect(parse(null)).toBeNaN();
    expect(rfc3339(expected)).toBe("2030-01-02T10:00:00Z");
  });
  it("is shown as clocks of the zone show it, and read back", () => {
    const time = at("2026-07-01T10:30:00Z");
    expect(stamp(time, "Europe/Paris")).toBe("2026-07-01 12:30");
    for (const zone of ["UTC", "Europe/Paris", "Asia/Kolkata", "America/New_York"]) {
      expect(fromInput(forInput(time, zone), zone)).toBe(time);
      expect(fromWall(toWall(time, zone), zone)).toBe(time);
    }
    expect(fromInput("", "UTC")).toBeNull();
  });
  it("that clocks skip or show twice is still one time", () => {
    expect(fromInput("2026-10-25T02:30", "Europe/Paris")).toBe(at("2026-10-25T00:30:00Z"));
    expect(fromInput("2026-03-29T02:30", "Europe/Paris")).toBe(at("2026-03-29T01:30:00Z"));
  });
  it("has lengths in words", () => {
    expect([0, 25 * MINUTE, 3 * DAY + 4 * HOUR, HOUR + MINUTE].map(length)).toEqual([
      "0 min",
      "25 min",
      "3 d 4 h",
      "1 h 1 min",
    ]);
    expect(relative(0, HOUR)).toBe("1 h ago");
    expect(relative(HOUR, 0)).toBe("in 1 h");
  });
});
