// Geometry of the timeline: positions of times, visible rows, the row under the pointer. Pure: no document, no clock.
// Times are milliseconds since 1970 (UTC), lengths are CSS pixels.

import { clock, day, fromWall, month, toWall } from "./zone";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Shortest and longest period on the screen. The API's limit is 400 days. */
export const NARROWEST = HOUR;
export const WIDEST = 370 * DAY;
const MOST = 400 * DAY;

/** A period and the width at which it is drawn. */
export interface Scale {
  start: number;
  end: number;
  width: number;
}

export function xOf(scale: Scale, time: number): number {
  return ((time - scale.start) / (scale.end - scale.start)) * scale.width;
}

export function timeAt(scale: Scale, x: number): number {
  return scale.start + (x / scale.width) * (scale.end - scale.start);
}

/** Moves the period by `pixels` without changing its length. */
export function pan(scale: Scale, pixels: number): Scale {
  const shift = (pixels / scale.width) * (scale.end - scale.start);
  return { ...scale, start: scale.start + shift, end: scale.end + shift };
}

/** Zooms and keeps the time at `x` in place. A factor above 1 makes the period longer. */
export function zoom(scale: Scale, factor: number, x: number): Scale {
  const length = Math.min(WIDEST, Math.max(NARROWEST, (scale.end - scale.start) * factor));
  const fixed = timeAt(scale, x);
  const start = fixed - (x / scale.width) * length;
  return { ...scale, start, end: start + length };
}

/** Rounds the start or end of a draft to 15 minutes, or to 1 minute when zoomed in. */
export function snap(scale: Scale, time: number): number {
  const pixels = (scale.width / (scale.end - scale.start)) * 15 * MINUTE;
  const step = pixels > 60 ? MINUTE : 15 * MINUTE;
  return Math.round(time / step) * step;
}

export interface Tick {
  time: number;
  label: string;
  /** Start of a day. At wider scales, start of a week or a year. */
  major: boolean;
}

const STEPS = [5, 15, 30, 60, 180, 360, 720].map((minutes) => minutes * MINUTE);
const LEAST = 90;

/** Ticks of the axis at round local times, at least about 80 pixels apart. */
export function ticks(scale: Scale, zone: string): Tick[] {
  const perPixel = (scale.end - scale.start) / scale.width;
  const step = STEPS.find((candidate) => candidate / perPixel >= LEAST);
  const found: Tick[] = [];
  const add = (wall: number, label: (time: number) => string, major: boolean): boolean => {
    const time = fromWall(wall, zone);
    if (time > scale.end) return false;
    const last = found[found.length - 1];
    if (time >= scale.start && (!last || time > last.time)) found.push({ time, label: label(time), major });
    return true;
  };
  const first = toWall(scale.start, zone);
  if (step) {
    for (let wall = Math.floor(first / step) * step; ; wall += step) {
      const midnight = wall % DAY === 0;
      if (!add(wall, (time) => (midnight ? day(time, zone) : clock(time, zone)), midnight)) return found;
    }
  }
  const days = [1, 2, 7].find((count) => (count * DAY) / perPixel >= LEAST * 0.9);
  if (days) {
    // Weeks start on Monday. 5 January 1970 was a Monday.
    const origin = days === 7 ? 4 * DAY : 0;
    const length = days * DAY;
    for (let wall = Math.floor((first - origin) / length) * length + origin; ; wall += length) {
      const monday = new Date(wall).getUTCDay() === 1;
      if (!add(wall, (time) => day(time, zone), monday)) return found;
    }
  }
  const start = new Date(first);
  for (let count = start.getUTCFullYear() * 12 + start.getUTCMonth(); ; count += 1) {
    const wall = Date.UTC(Math.floor(count / 12), count % 12, 1);
    if (!add(wall, (time) => month(time, zone), count % 12 === 0)) return found;
  }
}

/** `end` is `Infinity` for an interval without end. */
export interface Interval {
  start: number;
  end: number;
}

/**
 * Finds the items that overlap a period. Items are sorted by start, and a binary search over the latest end so far
 * skips those that have ended.
 */
export class IntervalIndex<T extends Interval> {
  readonly items: readonly T[];
  private readonly latest: number[] = [];

  constructor(items: Iterable<T>) {
    this.items = [...items].sort((one, other) => one.start - other.start || one.end - other.end);
    let latest = -Infinity;
    for (const item of this.items) {
      latest = Math.max(latest, item.end);
      this.latest.push(latest);
    }
  }

  /** Items that overlap [start, end), sorted by start. */
  between(start: number, end: number): T[] {
    const found: T[] = [];
    // Skip items that have ended by `start`: the latest end of all items before `low` isn't after it.
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.latest[middle] ?? 0) > start) high = middle;
      else low = middle + 1;
    }
    for (let at = low; at < this.items.length; at += 1) {
      const item = this.items[at];
      if (!item || item.start >= end) break;
      if (item.end > start) found.push(item);
    }
    return found;
  }
}

/** Puts each item into the first lane that is free at its start. Returns lanes by item, and the number of lanes. */
export function lanes(items: readonly Interval[]): { lane: number[]; count: number } {
  const order = items.map((_, at) => at).sort((one, other) => (items[one]?.start ?? 0) - (items[other]?.start ?? 0));
  const ends: number[] = [];
  const lane = new Array<number>(items.length).fill(0);
  for (const at of order) {
    const item = items[at];
    if (!item) continue;
    let free = ends.findIndex((end) => end <= item.start);
    if (free < 0) free = ends.push(0) - 1;
    ends[free] = item.end;
    lane[at] = free;
  }
  return { lane, count: ends.length };
}

/** A row of the timeline: a heading or a host. */
export interface Row {
  top: number;
  height: number;
}

/** Stacks rows from 0 without gaps, and returns their total height. */
export function stack<T extends { height: number }>(rows: readonly T[]): { rows: (T & Row)[]; height: number } {
  let top = 0;
  const placed = rows.map((row) => {
    const at = { ...row, top };
    top += row.height;
    return at;
  });
  return { rows: placed, height: top };
}

/** Index of the row at `y`, or -1. Rows must be in order and without gaps. */
export function rowAt(rows: readonly Row[], y: number): number {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (!row) return -1;
    if (y < row.top) high = middle - 1;
    else if (y >= row.top + row.height) low = middle + 1;
    else return middle;
  }
  return -1;
}

/** Visible rows as a half-open range of indices. */
export function visible(rows: readonly Row[], top: number, height: number): [number, number] {
  const first = rowAt(rows, Math.max(0, top));
  if (first < 0) return [0, 0];
  let end = first;
  for (let row = rows[end]; row && row.top < top + height; row = rows[end]) end += 1;
  return [first, end];
}

/** Number of occupied hosts over [start, end), as steps of time and count in order and without gaps. */
export function occupancy(hosts: readonly (readonly Interval[])[], start: number, end: number): [number, number][] {
  const changes = new Map<number, number>([[start, 0]]);
  const change = (time: number, by: number): void => {
    changes.set(time, (changes.get(time) ?? 0) + by);
  };
  for (const bars of hosts) {
    // A host with overlapping bars counts once.
    let until = -Infinity;
    for (const bar of [...bars].sort((one, other) => one.start - other.start)) {
      const from = Math.max(bar.start, until, start);
      const to = Math.min(bar.end, end);
      if (to > from) {
        change(from, 1);
        change(to, -1);
        until = to;
      }
      until = Math.max(until, Math.min(bar.end, end));
    }
  }
  let taken = 0;
  return [...changes]
    .sort((one, other) => one[0] - other[0])
    .filter(([time]) => time < end)
    .map(([time, by]): [number, number] => [time, (taken += by)]);
}

export const HUES = 12;

/**
 * Picks a hue for each project by hash, so it is usually the same in every session. If another project has the hue, a
 * free one is used while there is any. Neighboring hues also differ in lightness.
 */
export function hues(projects: Iterable<string>): Map<string, { hue: number; dark: boolean }> {
  const taken = new Set<number>();
  const found = new Map<string, { hue: number; dark: boolean }>();
  for (const project of [...new Set(projects)].sort()) {
    let hash = 2166136261;
    for (let at = 0; at < project.length; at += 1) hash = Math.imul(hash ^ project.charCodeAt(at), 16777619) >>> 0;
    let slot = (hash >>> 8) % HUES;
    // 7 and 12 have no common factor, so every hue is tried, distant ones first.
    for (let tried = 1; taken.has(slot) && tried < HUES; tried += 1) slot = (slot + 7) % HUES;
    taken.add(slot);
    found.set(project, { hue: slot * (360 / HUES) + 10, dark: slot % 2 === 1 });
  }
  return found;
}

/** Period to load for a scale: whole days, with a margin so that small moves need no request. */
export function loadWindow(scale: Scale): Interval {
  const length = scale.end - scale.start;
  const margin = Math.min(length / 2, (MOST - 2 * DAY - length) / 2);
  return { start: Math.floor((scale.start - margin) / DAY) * DAY, end: Math.ceil((scale.end + margin) / DAY) * DAY };
}

/** Length of a bucket in minutes if bars would be too narrow to tell apart. Null: draw bars. */
export function bucketMinutes(scale: Scale, hosts: number): number | null {
  const length = scale.end - scale.start;
  if (length <= 62 * DAY || hosts <= 200) return null;
  const wanted = ((length / scale.width) * 4) / MINUTE;
  return Math.max(60, Math.ceil(wanted / 60) * 60);
}
