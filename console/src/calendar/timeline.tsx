// The timeline as a component: a canvas, and a grid of elements for assistive technology, with the bars of the focused
// row only.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { clock as serviceClock } from "../api/client";
import { t } from "../texts";
import type { Bar, Calendar, CalendarHost } from "./data";
import * as geometry from "./geometry";
import { MINUTE, type Scale } from "./geometry";
import { barBox, type Ghost, heightOf, label, type Line, paint, palette, type Palette, type Scene } from "./paint";
import { stamp } from "./zone";

/** Hosts and period of a lease that is being drafted. */
export interface Draft {
  hosts: CalendarHost[];
  start: number;
  end: number;
}

/** A new start or end of an existing lease. */
export interface Edge {
  lease: string;
  side: "start" | "end";
  time: number;
}

export interface TimelineProps {
  calendar: Calendar;
  scale: Omit<Scale, "width">;
  zone: string;
  groupBy: string;
  dense: boolean;
  layers: ReadonlySet<string>;
  /** Names of known projects by ID. */
  projects: Readonly<Record<string, string>>;
  theme: string;
  selected: string | null;
  draft:
    | (Draft & {
        look: Ghost["look"];
        label: string;
        offers: { start: number; end: number; hosts: number; label: string }[];
      })
    | null;
  onScale: (scale: Omit<Scale, "width">) => void;
  onDraft: (draft: Draft | null, done: boolean) => void;
  onOffer: (index: number) => void;
  /** Result of the dry run for the dragged edge. */
  edgeAnswer: {
    look: Ghost["look"];
    label: string;
    /** Alternative periods of the lease. */
    offers: { start: number; end: number; label: string }[];
    lease: string | null;
  };
  onEdge: (edge: Edge | null, done: boolean) => void;
  onOpen: (lease: string, page: boolean) => void;
  onNew: () => void;
  onToday: () => void;
  mayDraft: boolean;
}

const LEFT = 168;
const AXIS = 46;
const GRAB = 5;

type Gesture =
  | { kind: "draft"; row: number; start: number; moved: boolean }
  | { kind: "pan"; x: number; scale: Scale }
  | { kind: "edge"; bar: Bar; side: "start" | "end"; row: number; time: number; moved: boolean };

export function Timeline(props: TimelineProps): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 800, height: 400 });
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [focus, setFocus] = useState<{ row: number; bar: number }>({ row: -1, bar: -1 });
  const [scrollTop, setScrollTop] = useState(0);
  const [hover, setHover] = useState<{ bar: Bar; row: number; x: number; y: number } | null>(null);
  const rest = useRef<ReturnType<typeof setTimeout>>();
  const gesture = useRef<Gesture | null>(null);
  const [edge, setEdge] = useState<{ bar: Bar; side: "start" | "end"; time: number; row: number } | null>(null);
  const look = useRef<Palette | null>(null);
  const scale: Scale = { ...props.scale, width: Math.max(50, size.width - LEFT) };

  const lines = useMemo(() => {
    const groups = new Map<string, CalendarHost[]>();
    for (const host of props.calendar.hosts) {
      if (host.status === "deleted") continue;
      const name = host.group ?? t.calendar.ungrouped;
      const list = groups.get(name);
      if (list) list.push(host);
      else groups.set(name, [host]);
    }
    const { start, end } = props.calendar;
    const rows: Line[] = [];
    for (const [name, hosts] of [...groups].sort(([one], [other]) =>
      one.localeCompare(other, "en", { numeric: true }),
    )) {
      const open = !closed.has(name);
      const taken = hosts.map((host) =>
        host.bars.items.filter((bar) => bar.kind !== "preemptible" && bar.kind !== "offer"),
      );
      rows.push({ kind: "group", height: 26, name, hosts, open, steps: geometry.occupancy(taken, start, end) });
      if (open) for (const host of hosts) rows.push({ kind: "host", height: heightOf(host, props.dense), host });
    }
    return geometry.stack(rows);
  }, [props.calendar, closed, props.dense]);

  const hues = useMemo(() => geometry.hues(props.calendar.leases.map((lease) => lease.project)), [props.calendar]);
  const focusedLine = lines.rows[focus.row];
  const focusedBars = useMemo(
    () => (focusedLine?.kind === "host" ? focusedLine.host.bars.between(scale.start, scale.end).slice(0, 100) : []),
    [focusedLine, scale.start, scale.end],
  );

  const ghosts = useMemo((): Ghost[] => {
    const rowOf = (host: CalendarHost): number =>
      lines.rows.findIndex((line) => line.kind === "host" && line.host.id === host.id);
    const found: Ghost[] = [];
    if (props.draft) {
      const rows = props.draft.hosts.map(rowOf).filter((row) => row >= 0);
      if (rows.length > 0) {
        const first = Math.min(...rows);
        const last = Math.max(...rows) + 1;
        props.draft.offers.forEach((offer, at) => {
          const end_row = Math.min(last, first + Math.max(1, offer.hosts));
          found.push({ ...offer, first, end_row, look: "offer", offer: at });
        });
        found.push({ ...props.draft, first, end_row: last });
      }
    }
    const { offers, lease } = props.edgeAnswer;
    if (offers.length > 0) {
      lines.rows.forEach((line, row) => {
        if (line.kind !== "host" || !line.host.bars.items.some((bar) => bar.lease?.id === lease)) return;
        offers.forEach((offer, at) => {
          found.push({ ...offer, first: row, end_row: row + 1, look: "offer", offer: at });
        });
      });
    }
    if (edge) {
      const { bar, row, side, time } = edge;
      const [start, end] = side === "start" ? [time, bar.end] : [bar.start, time];
      const { look, label: answer } = props.edgeAnswer;
      found.push({ start, end, first: row, end_row: row + 1, look, label: `${stamp(time, props.zone)}: ${answer}` });
    }
    return found;
  }, [props.draft, edge, props.edgeAnswer, lines, props.zone]);

  const scene = (): Scene => ({
    scale,
    lines: lines.rows,
    scrollTop: scroller.current?.scrollTop ?? 0,
    width: size.width,
    height: size.height,
    left: LEFT,
    top: AXIS,
    now: serviceClock.now(),
    zone: props.zone,
    layers: props.layers,
    hovered: hover?.bar ?? null,
    selected: props.selected,
    focused: focus.row,
    focusedBar: focusedBars[focus.bar] ?? null,
    ghosts,
    projects: props.projects,
    hues,
    buckets: props.calendar.bucketMinutes
      ? { start: props.calendar.start, minutes: props.calendar.bucketMinutes }
      : null,
  });

  const draw = useRef<() => void>(() => {});
  const frame = useRef(0);
  draw.current = () => {
    const target = canvas.current;
    const context = target?.getContext("2d");
    if (!target || !context) return;
    look.current ??= palette(target);
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (target.width !== width || target.height !== height) {
      target.width = width;
      target.height = height;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(context, scene(), look.current);
  };
  const schedule = (): void => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => draw.current());
  };
  useLayoutEffect(schedule);
  useEffect(() => {
    look.current = null;
    schedule();
  }, [props.theme]);
  useEffect(() => {
    const timer = setInterval(schedule, 1000);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const recolor = (): void => {
      look.current = null;
      schedule();
    };
    scheme.addEventListener("change", recolor);
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setSize({ width: Math.floor(entry.contentRect.width), height: Math.floor(entry.contentRect.height) });
    });
    if (scroller.current) observer.observe(scroller.current);
    return () => {
      clearInterval(timer);
      scheme.removeEventListener("change", recolor);
      observer.disconnect();
      cancelAnimationFrame(frame.current);
      clearTimeout(rest.current);
    };
  }, []);

  const latest = useRef(props);
  latest.current = props;
  const current = useRef(scale);
  current.current = scale;
  // Not passive, because the page itself must not scroll or zoom.
  useEffect(() => {
    const element = scroller.current;
    const wheel = (event: WheelEvent): void => {
      const box = element?.getBoundingClientRect();
      if (!box) return;
      const x = event.clientX - box.left - LEFT;
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        latest.current.onScale(geometry.zoom(current.current, Math.exp(event.deltaY * 0.002), Math.max(0, x)));
      } else if (sideways !== 0 && Math.abs(sideways) > (event.shiftKey ? 0 : Math.abs(event.deltaY))) {
        event.preventDefault();
        latest.current.onScale(geometry.pan(current.current, sideways));
      }
    };
    element?.addEventListener("wheel", wheel, { passive: false });
    return () => element?.removeEventListener("wheel", wheel);
  }, []);

  const locate = (event: { clientX: number; clientY: number }) => {
    const box = scroller.current?.getBoundingClientRect() ?? new DOMRect();
    const x = event.clientX - box.left - LEFT;
    const y = event.clientY - box.top - AXIS;
    const inside = y + (scroller.current?.scrollTop ?? 0);
    const row = y >= 0 ? geometry.rowAt(lines.rows, inside) : -1;
    return { x, y, row, inside, time: geometry.timeAt(scale, x) };
  };

  const hit = (row: number, time: number, inside: number): Bar | null => {
    const line = lines.rows[row];
    if (line?.kind !== "host" || props.calendar.bucketMinutes) return null;
    const slack = geometry.timeAt(scale, 3) - scale.start;
    const found = line.host.bars
      .between(time - slack, time + slack)
      .filter((bar) => bar.kind === "lease" || bar.kind === "other" || props.layers.has(bar.kind));
    const within = found.filter((bar) => {
      const box = barBox(line, bar);
      return inside >= box.y - 1 && inside <= box.y + box.height + 1;
    });
    return within.find((bar) => bar.start <= time && bar.end > time) ?? within[0] ?? null;
  };

  const edgeOf = (bar: Bar | null, x: number): "start" | "end" | null => {
    const lease = bar?.lease;
    if (!bar || !lease || bar.kind !== "lease" || !props.mayDraft) return null;
    if (lease.status !== "PENDING" && lease.status !== "ACTIVE" && lease.status !== "STARTING") return null;
    const [from, to] = [geometry.xOf(scale, bar.start), geometry.xOf(scale, bar.end)];
    if (to - from < 4 * GRAB) return null;
    if (Math.abs(x - to) <= GRAB) return "end";
    return Math.abs(x - from) <= GRAB && lease.status === "PENDING" ? "start" : null;
  };

  const draftTo = (begin: Gesture & { kind: "draft" }, row: number, time: number, done: boolean): void => {
    const [from, to] = [Math.min(begin.row, row), Math.max(begin.row, row)];
    const hosts = lines.rows.slice(from, to + 1).flatMap((line) => (line.kind === "host" ? [line.host] : []));
    const [one, other] = [geometry.snap(scale, begin.start), geometry.snap(scale, time)];
    const start = Math.min(one, other);
    props.onDraft({ hosts, start, end: Math.max(one, other, start + MINUTE) }, done);
  };

  const down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    setHover(null);
    const { x, y, row, inside, time } = locate(event);
    const line = lines.rows[row];
    const offered = ghostAt(row, time);
    if (x >= 0 && offered >= 0) {
      props.onOffer(offered);
      return;
    }
    scroller.current?.focus({ preventScroll: true });
    if (line?.kind === "group" && y >= 0) {
      toggle(line.name);
      setFocus({ row, bar: -1 });
      return;
    }
    if (x < 0) {
      if (row >= 0) setFocus({ row, bar: -1 });
      return;
    }
    if (y < 0) {
      gesture.current = { kind: "pan", x: event.clientX, scale };
    } else if (line?.kind === "host") {
      const bar = hit(row, time, inside);
      const side = edgeOf(bar, x);
      if (bar && side)
        gesture.current = { kind: "edge", bar, side, row, time: side === "end" ? bar.end : bar.start, moved: false };
      else if (bar) {
        setFocus({ row, bar: -1 });
        if (bar.lease) props.onOpen(bar.lease.id, false);
        return;
      } else if (props.mayDraft && time >= serviceClock.now() - 15 * MINUTE) {
        gesture.current = { kind: "draft", row, start: time, moved: false };
      } else return;
    } else return;
    (event.target as Element).setPointerCapture?.(event.pointerId);
  };

  const ghostAt = (row: number, time: number): number => {
    const found = ghosts.find(
      (ghost) =>
        ghost.look === "offer" && row >= ghost.first && row < ghost.end_row && time >= ghost.start && time < ghost.end,
    );
    return found?.offer ?? -1;
  };

  const move = (event: PointerEvent): void => {
    const { x, row, inside, time } = locate(event);
    const active = gesture.current;
    if (!active) {
      const bar = x >= 0 ? hit(row, time, inside) : null;
      const box = scroller.current?.getBoundingClientRect();
      setHover(bar && box ? { bar, row, x: event.clientX - box.left, y: event.clientY - box.top } : null);
      const cursor =
        ghostAt(row, time) >= 0
          ? "pointer"
          : edgeOf(bar, x)
            ? "ew-resize"
            : bar?.lease
              ? "pointer"
              : x >= 0 && lines.rows[row]?.kind === "host" && props.mayDraft
                ? "crosshair"
                : "default";
      if (canvas.current) canvas.current.style.cursor = cursor;
      return;
    }
    if (active.kind === "pan") {
      props.onScale(geometry.pan(active.scale, active.x - event.clientX));
    } else if (active.kind === "draft") {
      if (!active.moved && Math.abs(geometry.xOf(scale, active.start) - x) < 4 && row === active.row) return;
      active.moved = true;
      draftTo(active, row < 0 ? active.row : row, time, false);
    } else {
      active.moved = true;
      active.time = geometry.snap(scale, time);
      setEdge({ bar: active.bar, side: active.side, time: active.time, row: active.row });
      if (active.bar.lease) props.onEdge({ lease: active.bar.lease.id, side: active.side, time: active.time }, false);
    }
  };

  const up = (event: PointerEvent): void => {
    const active = gesture.current;
    gesture.current = null;
    setEdge(null);
    if (!active) return;
    const { row, time } = locate(event);
    if (active.kind === "draft") {
      if (active.moved) draftTo(active, row < 0 ? active.row : row, time, true);
      else {
        setFocus({ row: active.row, bar: -1 });
        props.onDraft(null, true);
      }
    } else if (active.kind === "edge" && active.bar.lease) {
      if (active.moved)
        props.onEdge({ lease: active.bar.lease.id, side: active.side, time: active.time }, true);
      else props.onOpen(active.bar.lease.id, false);
    }
  };

  const toggle = (name: string): void => {
    setClosed((before) => {
      const next = new Set(before);
      if (!next.delete(name)) next.add(name);
      return next;
    });
  };

  const focusRow = (row: number): void => {
    const next = Math.min(lines.rows.length - 1, Math.max(0, row));
    setFocus({ row: next, bar: -1 });
    const line = lines.rows[next];
    const element = scroller.current;
    if (!line || !element) return;
    const room = size.height - AXIS;
    if (line.top < element.scrollTop) element.scrollTop = line.top;
    else if (line.top + line.height > element.scrollTop + room) element.scrollTop = line.top + line.height - room;
  };

  const key = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((size.height - AXIS) / 26) - 1);
    const quarter = scale.width / 4;
    const handled = ((): boolean => {
      switch (event.key) {
        case "ArrowDown":
          focusRow(focus.row + 1);
          return true;
        case "ArrowUp":
          focusRow(focus.row - 1);
          return true;
        case "PageDown":
          focusRow(focus.row + page);
          return true;
        case "PageUp":
          focusRow(focus.row - page);
          return true;
        case "Home":
          focusRow(0);
          return true;
        case "End":
          focusRow(lines.rows.length - 1);
          return true;
        case "ArrowRight":
        case "ArrowLeft": {
          const step = event.key === "ArrowRight" ? 1 : -1;
          if (focusedLine?.kind === "group") {
            if (focusedLine.open !== step > 0) toggle(focusedLine.name);
            else props.onScale(geometry.pan(scale, step * quarter));
            return true;
          }
          const next = focus.bar + step;
          if (!event.shiftKey && next >= 0 && next < focusedBars.length) setFocus({ row: focus.row, bar: next });
          else props.onScale(geometry.pan(scale, step * quarter));
          return true;
        }
        case "+":
        case "=":
          props.onScale(geometry.zoom(scale, 0.6, scale.width / 2));
          return true;
        case "-":
          props.onScale(geometry.zoom(scale, 1 / 0.6, scale.width / 2));
          return true;
        case "t":
          props.onToday();
          return true;
        case "n":
          props.onNew();
          return true;
        case "Escape":
          props.onDraft(null, true);
          return true;
        case "Enter":
        case " ": {
          if (focusedLine?.kind === "group") toggle(focusedLine.name);
          else {
            const bar = focusedBars[focus.bar];
            if (bar?.lease) props.onOpen(bar.lease.id, event.key === "Enter");
          }
          return true;
        }
        default:
          return false;
      }
    })();
    if (handled) event.preventDefault();
  };

  const describe = (bar: Bar): string => {
    const until = bar.end === Infinity ? t.calendar.open : stamp(bar.end, props.zone);
    const what =
      bar.kind === "preemptible"
        ? t.calendar.preemptible(bar.instances ?? 1, until)
        : `${label(bar, props.projects)}${bar.lease ? `, ${t.status(bar.lease.status)}` : ""}`;
    return t.calendar.bar(what, stamp(bar.start, props.zone), until);
  };
  const rowName = (line: Line): string =>
    line.kind === "group"
      ? t.calendar.groupLabel(line.name, line.hosts.length)
      : (line.host.name ?? t.calendar.unnamed(line.host.id));
  const [first, last] = geometry.visible(lines.rows, scrollTop, size.height - AXIS);
  // All visible rows, so that a screen reader can also move between rows by itself.
  const read = lines.rows.slice(first, last).map((line, at) => ({ line, row: first + at }));

  return (
    <div class="timeline">
      <div
        class="scroller"
        ref={scroller}
        tabIndex={0}
        role="treegrid"
        aria-label={t.calendar.grid}
        aria-rowcount={lines.rows.length}
        aria-activedescendant={
          focus.row >= 0 ? (focus.bar >= 0 ? `bar-${focus.row}-${focus.bar}` : `row-${focus.row}`) : undefined
        }
        onKeyDown={key}
        onFocus={() => focus.row < 0 && setFocus({ row: 0, bar: -1 })}
        onScroll={(event) => {
          schedule();
          // The canvas follows at once. Rows for screen readers are updated when scrolling stops.
          clearTimeout(rest.current);
          rest.current = setTimeout((top: number) => setScrollTop(top), 120, event.currentTarget.scrollTop);
        }}
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          style={{ width: `${size.width}px`, height: `${size.height}px` }}
          onPointerDown={down}
          onPointerMove={move}
          onPointerUp={up}
          onPointerCancel={() => {
            gesture.current = null;
            setEdge(null);
            props.onEdge(null, false);
          }}
          onPointerLeave={() => setHover(null)}
          onDblClick={(event) => {
            const { row, time, inside } = locate(event);
            const bar = hit(row, time, inside);
            if (bar?.lease) props.onOpen(bar.lease.id, true);
          }}
        />
        <div
          class="spacer"
          role="presentation"
          style={{ height: `${Math.max(0, lines.height + AXIS - size.height)}px` }}
        />
        <div class="reader" role="rowgroup">
          {read.map(({ line, row }) => (
            <div
              key={row}
              id={`row-${row}`}
              data-middle={line.top + line.height / 2}
              role="row"
              aria-level={line.kind === "group" ? 1 : 2}
              aria-rowindex={row + 1}
              aria-expanded={line.kind === "group" ? line.open : undefined}
            >
              <span role="rowheader">{rowName(line)}</span>
              {row === focus.row &&
                line.kind === "host" &&
                focusedBars.map((bar, at) => (
                  <span key={at} id={`bar-${row}-${at}`} role="gridcell" aria-selected={at === focus.bar}>
                    {describe(bar)}
                  </span>
                ))}
              {row === focus.row && line.kind === "host" && focusedBars.length === 0 && (
                <span role="gridcell">{t.calendar.rowEmpty}</span>
              )}
            </div>
          ))}
        </div>
      </div>
      {hover && !gesture.current && (
        <div
          class="tip"
          style={{
            left: `${Math.min(hover.x + 12, size.width - 280)}px`,
            top: `${hover.y > size.height - 110 ? hover.y - 96 : hover.y + 16}px`,
          }}
        >
          <strong>
            <bdi>{label(hover.bar, props.projects).slice(0, 120)}</bdi>
          </strong>
          {hover.bar.lease && <span>{t.status(hover.bar.lease.status)}</span>}
          <span>
            {stamp(hover.bar.start, props.zone)} –{" "}
            {hover.bar.end === Infinity ? t.calendar.open : stamp(hover.bar.end, props.zone)}
          </span>
          {hover.bar.instances !== null && <span>{t.calendar.instances(hover.bar.instances)}</span>}
        </div>
      )}
    </div>
  );
}
