// Time zones and formats of times. Pure. Times are milliseconds since 1970 (UTC). Wall times are the local times of a
// zone, represented as if they were UTC.

const formats = new Map<string, Intl.DateTimeFormat>();

function wallFormat(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(zone, format);
  }
  return format;
}

/** Wall time in the zone. */
export function toWall(time: number, zone: string): number {
  if (zone === "UTC") return time;
  const part: Record<string, number> = {};
  for (const { type, value } of wallFormat(zone).formatToParts(time)) part[type] = Number(value);
  const wall = Date.UTC(part.year ?? 1970, (part.month ?? 1) - 1, part.day, part.hour, part.minute, part.second);
  return wall + (((time % 1000) + 1000) % 1000);
}

/**
 * Inverse of `toWall`. If a wall time occurs twice, returns the first time. If clocks skip it, returns the time as if
 * they had not gone forward.
 */
export function fromWall(wall: number, zone: string): number {
  if (zone === "UTC") return wall;
  const before = wall - (toWall(wall - 86_400_000, zone) - (wall - 86_400_000));
  if (toWall(before, zone) === wall) return before;
  const after = wall - (toWall(wall + 86_400_000, zone) - (wall + 86_400_000));
  return toWall(after, zone) === wall ? after : before;
}

const two = (value: number): string => String(value).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** `14:05`. */
export function clock(time: number, zone: string): string {
  const wall = new Date(toWall(time, zone));
  return `${two(wall.getUTCHours())}:${two(wall.getUTCMinutes())}`;
}

/** `Wed 25 Nov`. */
export function day(time: number, zone: string): string {
  const wall = new Date(toWall(time, zone));
  return `${DAYS[wall.getUTCDay()]} ${wall.getUTCDate()} ${MONTHS[wall.getUTCMonth()]}`;
}

/** `Nov 2026`. */
export function month(time: number, zone: string): string {
  const wall = new Date(toWall(time, zone));
  return `${MONTHS[wall.getUTCMonth()]} ${wall.getUTCFullYear()}`;
}

/** `2026-11-25 14:05`. */
export function stamp(time: number, zone: string): string {
  return Number.isFinite(time) ? new Date(toWall(time, zone)).toISOString().slice(0, 16).replace("T", " ") : "";
}

/** Value of an `<input type="datetime-local">`. */
export function forInput(time: number, zone: string): string {
  return stamp(time, zone).replace(" ", "T");
}

/** Inverse of `forInput`. Null if the value is empty or invalid. */
export function fromInput(value: string, zone: string): number | null {
  const wall = Date.parse(`${value}Z`);
  return Number.isNaN(wall) ? null : fromWall(wall, zone);
}

/** `3 d 4 h`, `25 min`: at most two units, without sign. */
export function length(milliseconds: number): string {
  const minutes = Math.round(Math.abs(milliseconds) / 60_000);
  const [days, hours, rest] = [Math.floor(minutes / 1440), Math.floor((minutes % 1440) / 60), minutes % 60];
  const parts = [days ? `${days} d` : "", hours ? `${hours} h` : "", rest && days < 2 ? `${rest} min` : ""];
  return parts.filter(Boolean).slice(0, 2).join(" ") || "0 min";
}

/** `in 3 h`, `25 min ago`. */
export function relative(time: number, now: number): string {
  return time >= now ? `in ${length(time - now)}` : `${length(now - time)} ago`;
}

/** Reads a date of the API: `2030-01-02T10:00:00.000000`, `2030-01-02 10:00:00` (UTC) or RFC 3339. NaN if invalid. */
export function parse(text: string | null | undefined): number {
  if (!text) return Number.NaN;
  const iso = text.replace(" ", "T");
  return Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(iso) ? iso : `${iso}Z`);
}

/** `2030-01-02T10:00:00Z`, without fractions of a second. */
export function rfc3339(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
}
