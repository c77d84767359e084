// Measures the main thread of a page by a trace of the browser.

import type { Browser, Page } from "playwright-core";

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  /** Processor time, if measured. Unlike `dur`, it doesn't include time used by other programs. */
  tdur?: number;
  args?: { name?: string };
}

const SCRIPT = new Set([
  "FireAnimationFrame",
  "EventDispatch",
  "TimerFire",
  "RunMicrotasks",
  "FunctionCall",
  "EvaluateScript",
]);
const TASK = new Set(["RunTask", "ThreadControllerImpl::RunTask"]);

/** Milliseconds of script in total, and of the longest task, including script, styles, layout and painting. */
export async function mainThread(
  browser: Browser,
  page: Page,
  act: () => Promise<void>,
): Promise<{ script: number; longest: number }> {
  await browser.startTracing(page, {
    categories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel", "v8.execute"],
  });
  await act();
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const threads = new Map<string, TraceEvent[]>();
  const main = new Set<string>();
  for (const event of trace.traceEvents) {
    const thread = `${event.pid} ${event.tid}`;
    if (event.ph === "M" && event.name === "thread_name" && event.args?.name === "CrRendererMain") main.add(thread);
    if (event.ph !== "X") continue;
    const list = threads.get(thread);
    if (list) list.push(event);
    else threads.set(thread, [event]);
  }
  // The page's main thread is the one with the most events.
  const [events = []] = [...main].map((thread) => threads.get(thread) ?? []).sort((a, b) => b.length - a.length);
  const took = (event: TraceEvent): number => (event.tdur ?? event.dur ?? 0) / 1000;
  let [script, until] = [0, 0];
  for (const event of events.filter((event) => SCRIPT.has(event.name)).sort((a, b) => a.ts - b.ts)) {
    // Nested events are part of the outer event's time.
    if (event.ts < until) continue;
    until = event.ts + (event.dur ?? 0);
    script += took(event);
  }
  const longest = Math.max(0, ...events.filter((event) => TASK.has(event.name)).map(took));
  return { script, longest };
}
