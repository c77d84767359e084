// Draws the timeline on a canvas. Only draws visible rows, and only bars of the visible period.

import { t } from "../texts";
import type { Bar, CalendarHost, Kind } from "./data";
import { type Interval, MINUTE, type Row, type Scale, ticks, visible, xOf } from "./geometry";
import { clock } from "./zone";

/** A group's heading or a host. */
export type Line =
  | { kind: "group"; height: number; name: string; hosts: CalendarHost[]; open: boolean; steps: [number, number][] }
  | { kind: "host"; height: number; host: CalendarHost };

export type PlacedLine = Line & Row;

/** A period drawn over rows: a draft or an offered alternative. */
export interface Ghost extends Interval {
  /** Half-open range of row indices: `first`, `end_row`. */
  first: number;
  end_row: number;
  look: "asking" | "can" | "cannot" | "offer";
  label: string;
  /** Index of the offer. Absent for a draft. */
  offer?: number;
}

export interface Scene {
  scale: Scale;
  lines: readonly PlacedLine[];
  scrollTop: number;
  /** Size of the whole canvas in CSS pixels. */
  width: number;
  height: number;
  /** Width of the column of names. */
  left: number;
  /** Height of the axis. */
  top: number;
  now: number;
  zone: string;
  layers: ReadonlySet<string>;
  hovered: Bar | null;
  selected: string | null;
  focused: number;
  focusedBar: Bar | null;
  ghosts: readonly Ghost[];
  /** Names of known projects by ID. */
  projects: Readonly<Record<string, string>>;
  /** By project ID. */
  hues: ReadonlyMap<string, { hue: number; dark: boolean }>;
  /** Start of the first bucket and length of each. Null if hosts have bars. */
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
/** For names in bars that split the height of a row. */
const SMALL = FONT.replace("12px", "10px");

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

/** Text of a bar. `projects` has names of projects by ID. */
export function label(bar: Bar, projects: Readonly<Record<string, string>>): string {
  const names: Record<Kind, string> = {
    lease: "",
    offer: t.calendar.heldOffer,
    maintenance: t.calendar.maintenance,
    instance: t.calendar.instances(bar.instances ?? 1),
    preemptible: "",
    other: t.calendar.other,
  };
  if (!bar.lease) return names[bar.kind] || t.calendar.other;
  const { name: of, project } = bar.lease;
  const name = `${of.slice(0, 80)} (${(projects[project] ?? project).slice(0, 40)})`;
  return bar.kind === "offer" ? `${names.offer}: ${name}` : name;
}

/** Maximum number of lanes in a row. If more bars overlap, the last lane has all remaining bars. */
const LANES = 6;

/** Height of a host's row. Names stay readable if leases split the row, unless it is dense. */
export function heightOf(host: CalendarHost, dense: boolean): number {
  if (dense) return 17;
  const lanes = host.bars.items.reduce((most, bar) => Math.max(most, bar.lanes), 1);
  return lanes === 1 ? 25 : 5 + 14 * Math.min(lanes, LANES);
}

/** Vertical position of a bar. Overlapping bars split the height of the row. */
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
  const captions: Caption[] = [];
  for (let at = first; at < end; at += 1) {
    const line = scene.lines[at];
    if (!line) continue;
    context.fillStyle = look.line;
    context.fillRect(0, line.top + line.height - 1, scale.width, 1);
    if (line.kind === "group") paintOccupancy(context, line, scale, look);
    else paintHost(context, line, scene, look, captions);
  }
  // The line of the present is above bars but below their names, which stay readable.
  context.fillStyle = look.danger;
  context.fillRect(Math.round(nowX), scene.scrollTop, 2, bottom);
  let font = "";
  for (const caption of captions) {
    const own = fontOf(caption.height);
    if (own !== font) context.font = font = own;
    paintCaption(context, caption, nowX, look);
  }
  context.font = FONT;
  for (const ghost of scene.ghosts) paintGhost(context, ghost, scene, look);
  context.restore();

  paintNames(context, scene, look, first, end);
  paintAxis(context, scene, look, marks);
  if (nowX >= 0 && nowX <= scale.width) {
    const x = Math.round(left + nowX);
    context.fillStyle = look.danger;
    context.fillRect(x, top - 6, 2, 6);
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
      context.fillText(fit(context, BOLD, line.name, left - 44 - wide), 22, middle);
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
      context.fillText(fit(context, FONT, host.name ?? t.calendar.unnamed(host.id), left - 40 - wide), 22, middle);
    }
    if (at === scene.focused) outline(context, 1.5, line.top + 1.5, left - 3, line.height - 4, look.accent, 2);
  }
  context.restore();
  context.fillStyle = look["strong-line"];
  context.fillRect(left - 1, 0, 1, height);
}

/** Draws the number of occupied hosts in a group as a step chart. */
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
  captions: Caption[],
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
    paintBar(context, line, bar, scene, look, captions);
  }
}

/** Draws columns of occupancy (per mille), for scales at which bars would be too narrow. */
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

/** Name of a bar. Names are drawn above all bars. */
interface Caption {
  text: string;
  x: number;
  y: number;
  height: number;
  ink: string;
  /** Fill and opacity of the background, which keeps lines from crossing the text. */
  ground: string;
  opacity: number;
  /** Whether to always draw the background. Otherwise, only where the line of the present crosses the text. */
  grounded: boolean;
}

const fontOf = (height: number): string => (height < 16 ? SMALL : FONT);

function paintCaption(context: CanvasRenderingContext2D, caption: Caption, nowX: number, look: Palette): void {
  const { text, x, y, height } = caption;
  if (caption.grounded || (nowX > x - 5 && nowX < x + 600)) {
    const wide = Math.ceil(context.measureText(text).width) + 6;
    if (caption.grounded || nowX < x + wide - 3) {
      // At whole pixels, so that its edges are invisible.
      const box = [Math.round(x - 3), Math.round(y + 2), wide, Math.round(height - 4)] as const;
      context.fillStyle = look.bg;
      if (caption.opacity < 1) context.fillRect(...box);
      context.fillStyle = caption.ground;
      context.globalAlpha = caption.opacity;
      context.fillRect(...box);
      context.globalAlpha = 1;
    }
  }
  context.fillStyle = caption.ink;
  context.fillText(text, x, y + height / 2 + 0.5);
}

function paintBar(
  context: CanvasRenderingContext2D,
  row: Row,
  bar: Bar,
  scene: Scene,
  look: Palette,
  captions: Caption[],
): void {
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
  const hollow = status === "PENDING" || bar.kind === "offer" || bar.kind === "other";
  const opacity = ended ? 0.45 : bar.kind === "other" ? 0.8 : !hollow ? 1 : look.dark ? 0.24 : 0.16;
  const ground = bar.kind === "offer" ? look.bg : fill;
  rounded(context, from, y, wide, height, 3);
  context.fillStyle = ground;
  context.globalAlpha = bar.kind === "offer" ? 1 : opacity;
  context.fill();
  context.globalAlpha = ended ? 0.45 : 1;
  if (bar.kind === "maintenance") stripes(context, from, y, wide, height, look.soft, 6);
  const striped = status === "STARTING" || status === "TERMINATING";
  if (striped) stripes(context, from, y, wide, height, ink, 8);
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
  // Bars of the last lane can cover each other, and their names would too.
  const piled = bar.lanes > LANES && bar.lane >= LANES - 1;
  if (room < 26 || height < 11 || piled) return;
  captions.push({
    text: fit(context, fontOf(height), `${status === "ERROR" ? "! " : ""}${label(bar, scene.projects)}`, room),
    x: Math.max(from, 0) + 6,
    y,
    height,
    ink: hollow || ended || bar.kind === "maintenance" ? look.ink : ink,
    ground,
    opacity,
    grounded: striped || bar.kind === "maintenance",
  });
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
  const text = fit(context, BOLD, ghost.label, Math.max(wide - 12, 240));
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

/** Printable ASCII. Such text runs from left to right, and its width is the sum of the widths of its characters. */
const PLAIN = /^[\x20-\x7e]*$/;
/** Widths of these characters by font. Shaping is the main cost of text, and scrolling reveals much new text. */
const advances = new Map<string, Float64Array>();

function advancesOf(context: CanvasRenderingContext2D, font: string): Float64Array {
  const known = advances.get(font);
  if (known) return known;
  context.font = font;
  const widths = new Float64Array(0x7f);
  for (let code = 0x20; code < 0x7f; code += 1) widths[code] = context.measureText(String.fromCharCode(code)).width;
  advances.set(font, widths);
  return widths;
}

/** Number of characters of an ASCII text that fit: all, or as many as leave room for the ellipsis. */
export function fitting(text: string, widths: Float64Array, ellipsis: number, room: number): number {
  let wide = 0;
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    wide += widths[text.charCodeAt(at)] ?? 0;
    if (wide > room) return count;
    if (wide + ellipsis <= room) count = at + 1;
  }
  return text.length;
}

/** Cuts a text to `room` pixels. Names can run in any direction, so text beyond ASCII is isolated (Unicode FSI). */
export function fit(context: CanvasRenderingContext2D, font: string, text: string, room: number): string {
  if (room <= 0) return "";
  if (PLAIN.test(text)) {
    const widths = advancesOf(context, font);
    // Three dots are at least as wide as the ellipsis.
    const count = fitting(text, widths, 3 * (widths[0x2e] ?? 0), room);
    return count === text.length ? text : count > 0 ? `${text.slice(0, count)}…` : "";
  }
  context.font = font;
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
