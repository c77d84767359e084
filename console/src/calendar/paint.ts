// Draws the timeline on a canvas: only rows that are visible, only bars of the period that is shown.

import { t } from "../texts";
import type { Bar, CalendarHost, Kind } from "./data";
import { type Interval, MINUTE, type Row, type Scale, ticks, visible, xOf } from "./geometry";
import { clock } from "./zone";

/** A row of the timeline. */
export type Line =
  | { kind: "group"; height: number; name: string; hosts: CalendarHost[]; open: boolean; steps: [number, number][] }
  | { kind: "host"; height: number; host: CalendarHost };

export type PlacedLine = Line & Row;

/** A period that is drawn over rows: a draft or what is offered instead. */
export interface Ghost extends Interval {
  /** Indices of rows, half-open. */
  first: number;
  end_row: number;
  look: "asking" | "can" | "cannot" | "offer";
  label: string;
}

export interface Scene {
  scale: Scale;
  lines: readonly PlacedLine[];
  scrollTop: number;
  /** All of the canvas, CSS pixels. */
  width: number;
  height: number;
  /** Where the names end and time begins. */
  left: number;
  /** Where the axis ends and rows begin. */
  top: number;
  now: number;
  zone: string;
  layers: ReadonlySet<string>;
  hovered: Bar | null;
  selected: string | null;
  focused: number;
  focusedBar: Bar | null;
  ghosts: readonly Ghost[];
  /** The hues of projects. */
  hues: ReadonlyMap<string, { hue: number; dark: boolean }>;
  /** Where hosts have buckets instead of bars: when the first begins, and how long each is. */
  buckets: { start: number; minutes: number } | null;
}

const NAMES = [
  "bg",
  "panel",
  "ink",
  "soft",
  "line",
  "strong-line",
  "accent",
  "accent-ink",
  "danger",
  "ok",
  "past",
  "hatch",
  "other",
] as const;
export type Palette = Record<(typeof NAMES)[number], string> & { dark: boolean };

export function palette(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return { ...(read as Record<(typeof NAMES)[number], string>), dark: style.getPropertyValue("--dark").trim() === "1" };
}

const FONT = '12px system-ui, "DejaVu Sans", sans-serif';
const BOLD = `600 ${FONT}`;
/** For names in bars that share the height of a row. */
const SMALL = FONT.replace("12px", "10px");

/** The fill and the ink of a bar. */
export function colors(bar: Bar, look: Palette, hues: Scene["hues"]): { fill: string; ink: string; edge: string } {
  if (bar.kind === "maintenance") return { fill: look.hatch, ink: look.ink, edge: look.soft };
  if (bar.kind === "instance" && !bar.lease) return { fill: look.soft, ink: look.bg, edge: look.soft };
  if (!bar.lease) return { fill: look.other, ink: look.ink, edge: look.soft };
  if (bar.lease.mine) return { fill: look.accent, ink: look["accent-ink"], edge: look.accent };
  const { hue: degrees, dark } = hues.get(bar.lease.project) ?? { hue: 0, dark: false };
  if (look.dark) {
    const fill = `oklch(${dark ? 0.7 : 0.8} 0.1 ${degrees})`;
    return { fill, ink: "#10151c", edge: fill };
  }
  const fill = `oklch(${dark ? 0.42 : 0.52} 0.11 ${degrees})`;
  return { fill, ink: "#ffffff", edge: fill };
}

export function label(bar: Bar): string {
  const names: Record<Kind, string> = {
    lease: "",
    offer: t.calendar.heldOffer,
    maintenance: t.calendar.maintenance,
    instance: t.calendar.instances(bar.instances ?? 1),
    preemptible: "",
    other: t.calendar.other,
  };
  if (!bar.lease) return names[bar.kind] || t.calendar.other;
  const name = `${bar.lease.name.slice(0, 80)} (${bar.lease.project.slice(0, 40)})`;
  return bar.kind === "offer" ? `${names.offer}: ${name}` : name;
}

/** Lanes that a row has at most; where more bars overlap, the last lane has all the rest. */
const LANES = 6;

/** How high the row of a host is: so that names can be read where leases share it. */
export function heightOf(host: CalendarHost, dense: boolean): number {
  if (dense) return 17;
  const lanes = host.bars.items.reduce((most, bar) => Math.max(most, bar.lanes), 1);
  return lanes === 1 ? 25 : 5 + 14 * Math.min(lanes, LANES);
}

/** Where in its row a bar is drawn: bars that overlap share the height. */
export function barBox(row: Row, bar: Bar): { y: number; height: number } {
  const inside = row.height - 5;
  if (bar.kind === "preemptible") return { y: row.top + row.height - 4, height: 3 };
  const count = Math.min(bar.lanes, LANES, Math.floor(inside / 3));
  const height = inside / count;
  return { y: row.top + 2 + Math.min(bar.lane, count - 1) * height, height: height - (count > 1 ? 1 : 0) };
}

export function paint(context: CanvasRenderingContext2D, scene: Scene, look: Palette): void {
  const { scale, left, top, width, height } = scene;
  context.clearRect(0, 0, width, height);
  context.fillStyle = look.bg;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";

  const [first, end] = visible(scene.lines, scene.scrollTop, height - top);
  const marks = ticks(scale, scene.zone);

  context.save();
  context.beginPath();
  context.rect(left, top, width - left, height - top);
  context.clip();
  context.translate(left, top - scene.scrollTop);
  const nowX = xOf(scale, scene.now);
  const bottom = scene.scrollTop + height;
  if (nowX > 0) {
    context.fillStyle = look.past;
    context.fillRect(0, scene.scrollTop, Math.min(nowX, scale.width), bottom);
  }
  for (const tick of marks) {
    context.fillStyle = tick.major ? look["strong-line"] : look.line;
    context.fillRect(Math.round(xOf(scale, tick.time)), scene.scrollTop, 1, bottom);
  }
  for (let at = first; at < end; at += 1) {
    const line = scene.lines[at];
    if (!line) continue;
    context.fillStyle = look.line;
    context.fillRect(0, line.top + line.height - 1, scale.width, 1);
    if (line.kind === "group") paintOccupancy(context, line, scale, look);
    else paintHost(context, line, scene, look);
  }
  for (const ghost of scene.ghosts) paintGhost(context, ghost, scene, look);
  context.restore();

  paintNames(context, scene, look, first, end);
  paintAxis(context, scene, look, marks);
  if (nowX >= 0 && nowX <= scale.width) {
    const x = Math.round(left + nowX);
    context.fillStyle = look.danger;
    context.fillRect(x, top - 6, 2, height);
    const text = `${t.now} ${clock(scene.now, scene.zone)}`;
    context.font = BOLD;
    const wide = context.measureText(text).width + 10;
    const at = Math.min(Math.max(left, x - wide / 2), width - wide);
    rounded(context, at, 1, wide, 16, 4);
    context.fill();
    context.fillStyle = look.bg;
    context.fillText(text, at + 5, 9.5);
    context.font = FONT;
  }
}

function paintAxis(
  context: CanvasRenderingContext2D,
  scene: Scene,
  look: Palette,
  marks: ReturnType<typeof ticks>,
): void {
  const { scale, left, top, width } = scene;
  context.fillStyle = look.panel;
  context.fillRect(0, 0, width, top);
  context.fillStyle = look["strong-line"];
  context.fillRect(0, top - 1, width, 1);
  let last = -Infinity;
  for (const tick of marks) {
    const x = left + xOf(scale, tick.time);
    context.fillStyle = tick.major ? look["strong-line"] : look.line;
    context.fillRect(Math.round(x), top - 8, 1, 8);
    context.font = tick.major ? BOLD : FONT;
    const wide = context.measureText(tick.label).width;
    if (x < last || x + wide > width) continue;
    context.fillStyle = tick.major ? look.ink : look.soft;
    context.fillText(tick.label, x + 4, top - 13);
    last = x + wide + 10;
  }
  context.font = FONT;
}

function paintNames(context: CanvasRenderingContext2D, scene: Scene, look: Palette, first: number, end: number): void {
  const { left, top, height } = scene;
  context.save();
  context.beginPath();
  context.rect(0, top, left, height - top);
  context.clip();
  context.fillStyle = look.panel;
  context.fillRect(0, top, left, height - top);
  context.translate(0, top - scene.scrollTop);
  for (let at = first; at < end; at += 1) {
    const line = scene.lines[at];
    if (!line) continue;
    context.fillStyle = look.line;
    context.fillRect(0, line.top + line.height - 1, left, 1);
    const middle = line.top + line.height / 2 + 0.5;
    if (line.kind === "group") {
      context.font = BOLD;
      context.fillStyle = look.ink;
      triangle(context, 12, middle, line.open);
      const count = String(line.hosts.length);
      const wide = context.measureText(count).width;
      context.fillText(fit(context, line.name, left - 44 - wide), 22, middle);
      context.font = FONT;
      context.fillStyle = look.soft;
      context.fillText(count, left - 10 - wide, middle);
    } else {
      const { host } = line;
      const state = t.calendar.hostStatus[host.status] ?? "";
      const off = host.power === "off" && scene.layers.has("power") ? t.calendar.powerOff : "";
      const note = state || off;
      context.fillStyle = host.status === "failed" ? look.danger : look.soft;
      const wide = note ? context.measureText(note).width : 0;
      if (note) context.fillText(note, left - 10 - wide, middle);
      context.fillStyle = state ? look.soft : look.ink;
      context.fillText(fit(context, host.name ?? t.calendar.unnamed(host.id), left - 40 - wide), 22, middle);
    }
    if (at === scene.focused) outline(context, 1.5, line.top + 1.5, left - 3, line.height - 4, look.accent, 2);
  }
  context.restore();
  context.fillStyle = look["strong-line"];
  context.fillRect(left - 1, 0, 1, height);
}

/** How many of the hosts of a group are taken, as a step area. */
function paintOccupancy(
  context: CanvasRenderingContext2D,
  line: PlacedLine & { kind: "group" },
  scale: Scale,
  look: Palette,
): void {
  const most = line.hosts.length || 1;
  const high = line.height - 7;
  context.fillStyle = look.soft;
  context.globalAlpha = 0.35;
  line.steps.forEach(([time, taken], at) => {
    if (taken <= 0) return;
    const from = Math.max(0, xOf(scale, time));
    const to = Math.min(scale.width, xOf(scale, line.steps[at + 1]?.[0] ?? scale.end));
    if (to > from)
      context.fillRect(from, line.top + line.height - 3 - (taken / most) * high, to - from, (taken / most) * high);
  });
  context.globalAlpha = 1;
}

function paintHost(
  context: CanvasRenderingContext2D,
  line: PlacedLine & { kind: "host" },
  scene: Scene,
  look: Palette,
): void {
  const { host } = line;
  const { scale } = scene;
  if (host.status !== "open" || (host.power === "off" && scene.layers.has("power"))) {
    context.fillStyle = look.hatch;
    context.globalAlpha = host.status === "open" ? 0.25 : 0.45;
    context.fillRect(0, line.top, scale.width, line.height - 1);
    context.globalAlpha = 1;
  }
  if (host.buckets && scene.buckets) {
    paintBuckets(context, line, host.buckets, scene, look);
    return;
  }
  for (const bar of host.bars.between(scale.start, scale.end)) {
    if (!scene.layers.has(bar.kind) && bar.kind !== "lease" && bar.kind !== "other") continue;
    paintBar(context, line, bar, scene, look);
  }
}

/** Columns of occupancy, where bars would be too narrow. */
function paintBuckets(
  context: CanvasRenderingContext2D,
  row: Row,
  buckets: readonly number[],
  scene: Scene,
  look: Palette,
): void {
  const { scale } = scene;
  const { start, minutes } = scene.buckets ?? { start: 0, minutes: 1 };
  context.fillStyle = look.accent;
  buckets.forEach((permille, at) => {
    if (permille <= 0) return;
    const from = Math.max(0, xOf(scale, start + at * minutes * MINUTE));
    const to = Math.min(scale.width, xOf(scale, start + (at + 1) * minutes * MINUTE));
    if (to <= from) return;
    context.globalAlpha = 0.15 + (permille / 1000) * 0.75;
    context.fillRect(from, row.top + 3, to - from + 0.5, row.height - 7);
  });
  context.globalAlpha = 1;
}

function paintBar(context: CanvasRenderingContext2D, row: Row, bar: Bar, scene: Scene, look: Palette): void {
  const { scale } = scene;
  const from = Math.max(-4, xOf(scale, bar.start));
  const to = Math.min(scale.width + 4, xOf(scale, bar.end));
  const wide = Math.max(2, to - from - 1);
  const { y, height } = barBox(row, bar);
  const { fill, ink, edge } = colors(bar, look, scene.hues);
  const status = bar.lease?.status ?? "";
  const ended = status === "TERMINATED" || status === "DELETING";
  if (bar.kind === "preemptible") {
    context.fillStyle = look.ink;
    context.fillRect(from, y, wide, height);
    return;
  }
  context.globalAlpha = ended ? 0.45 : 1;
  const hollow = status === "PENDING" || bar.kind === "offer" || bar.kind === "other";
  rounded(context, from, y, wide, height, 3);
  if (bar.kind === "offer") {
    context.fillStyle = look.bg;
    context.fill();
  } else {
    context.fillStyle = fill;
    if (hollow) context.globalAlpha *= bar.kind === "other" ? 0.8 : look.dark ? 0.24 : 0.16;
    context.fill();
  }
  context.globalAlpha = ended ? 0.45 : 1;
  if (bar.kind === "maintenance") stripes(context, from, y, wide, height, look.soft, 6);
  if (status === "STARTING" || status === "TERMINATING") stripes(context, from, y, wide, height, ink, 8);
  if (hollow) {
    context.setLineDash(bar.kind === "offer" ? [4, 3] : []);
    outline(context, from + 0.75, y + 0.75, wide - 1.5, height - 1.5, edge, 1.5);
    context.setLineDash([]);
  }
  if (status === "ERROR") outline(context, from + 1, y + 1, wide - 2, height - 2, look.danger, 2.5);
  const marked =
    bar === scene.focusedBar || bar === scene.hovered || (bar.lease !== null && bar.lease.id === scene.selected);
  if (marked) outline(context, from + 0.5, y + 0.5, wide - 1, height - 1, look.ink, 2);
  context.globalAlpha = 1;
  const room = Math.min(to, scale.width) - Math.max(from, 0) - 10;
  // Where bars lie on each other their names would, too.
  const piled = bar.lanes > LANES && bar.lane >= LANES - 1;
  if (room < 26 || height < 11 || piled) return;
  context.fillStyle = hollow || ended || bar.kind === "maintenance" ? look.ink : ink;
  context.font = height < 16 ? SMALL : FONT;
  const text = fit(context, `${status === "ERROR" ? "! " : ""}${label(bar)}`, room);
  if (status === "STARTING" || status === "TERMINATING") {
    // A name over stripes needs a ground of its own.
    const ground = context.measureText(text).width + 6;
    const ink_ = context.fillStyle;
    context.fillStyle = fill;
    context.fillRect(Math.max(from, 0) + 3, y + 1, ground, height - 2);
    context.fillStyle = ink_;
  }
  context.fillText(text, Math.max(from, 0) + 6, y + height / 2 + 0.5);
  context.font = FONT;
}

function paintGhost(context: CanvasRenderingContext2D, ghost: Ghost, scene: Scene, look: Palette): void {
  const first = scene.lines[ghost.first];
  const last = scene.lines[ghost.end_row - 1];
  if (!first || !last) return;
  const from = xOf(scene.scale, ghost.start);
  const wide = Math.max(3, xOf(scene.scale, ghost.end) - from);
  const y = first.top + 1;
  const high = last.top + last.height - first.top - 3;
  const color = { asking: look.soft, can: look.ok, cannot: look.danger, offer: look.accent }[ghost.look];
  rounded(context, from, y, wide, high, 4);
  context.fillStyle = color;
  context.globalAlpha = ghost.look === "offer" ? 0.08 : 0.18;
  context.fill();
  context.globalAlpha = 1;
  context.setLineDash(ghost.look === "offer" ? [5, 4] : []);
  outline(context, from + 1, y + 1, wide - 2, high - 2, color, 2);
  context.setLineDash([]);
  context.font = BOLD;
  const text = fit(context, ghost.label, Math.max(wide - 12, 240));
  const ground = context.measureText(text).width + 8;
  context.fillStyle = look.bg;
  context.globalAlpha = 0.88;
  const left = Math.max(4, Math.min(from + 4, scene.scale.width - ground - 4));
  context.fillRect(left, y + 3, ground, 16);
  context.globalAlpha = 1;
  context.fillStyle = color;
  context.fillText(text, left + 4, y + 11.5);
  context.font = FONT;
}

/** Names may be long and in any direction; each is drawn as one that stands alone. */
export function fit(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (room <= 0) return "";
  const isolated = (part: string): string => `\u2068${part}\u2069`;
  if (context.measureText(text).width <= room) return isolated(text);
  let low = 0;
  let high = Math.min(text.length, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? isolated(`${text.slice(0, low)}…`) : "";
}

function rounded(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  radius: number,
): void {
  context.beginPath();
  context.roundRect(x, y, Math.max(0, width), Math.max(0, height), Math.min(radius, width / 2, height / 2));
}

function outline(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  color: string,
  line: number,
): void {
  if (width <= 0 || height <= 0) return;
  rounded(context, x, y, width, height, 3);
  context.strokeStyle = color;
  context.lineWidth = line;
  context.stroke();
}

function stripes(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  color: string,
  gap: number,
): void {
  context.save();
  rounded(context, x, y, width, height, 3);
  context.clip();
  context.strokeStyle = color;
  context.globalAlpha *= 0.5;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = Math.floor((x - height) / gap) * gap; at < x + width; at += gap) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

function triangle(context: CanvasRenderingContext2D, x: number, y: number, open: boolean): void {
  context.beginPath();
  if (open) {
    context.moveTo(x - 4, y - 3);
    context.lineTo(x + 4, y - 3);
    context.lineTo(x, y + 3);
  } else {
    context.moveTo(x - 3, y - 4);
    context.lineTo(x + 3, y);
    context.lineTo(x - 3, y + 4);
  }
  context.fill();
}
