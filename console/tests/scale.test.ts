// The calendar with 2,000 hosts and 20,000 leases. Responses are faked in the browser, unless ALLOT_SCALE_URL is the
// address of a service with as many (`cargo xtask bench calendar --console`). Times are printed but not checked,
// because they depend on the machine.

import { type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { browser as launch, open, pause, Service } from "./service";
import { mainThread } from "./trace";

const [HOSTS, LEASES, PER_LEASE] = [2000, 20_000, 4];
const HOUR = 3_600_000;

/** A response of `GET /v1/calendar`, with consecutive leases on each host. */
function calendar(now: number, limit: number, marker: string | null): object {
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const free = new Array<number>(HOSTS).fill(now - 4 * 24 * HOUR);
  const bars: object[][] = Array.from({ length: HOSTS }, () => []);
  const leases: object[] = [];
  const iso = (time: number): string => new Date(time).toISOString();
  for (let at = 0; at < LEASES; at += 1) {
    const first = (at * PER_LEASE) % HOSTS;
    const hosts = Array.from({ length: PER_LEASE }, (_, next) => (first + next) % HOSTS);
    const start = Math.max(...hosts.map((host) => free[host] ?? 0)) + random(4) * HOUR;
    const end = start + (1 + random(16)) * HOUR;
    for (const host of hosts) {
      free[host] = end;
      bars[host]?.push({ kind: "lease", start: iso(start), end: iso(end), lease: at, instances: null, whole: true });
    }
    const status = end < now ? "TERMINATED" : start <= now ? "ACTIVE" : "PENDING";
    leases.push({
      id: `lease-${at}`,
      name: `lease ${at}`,
      project_id: `project-${at % 20}`,
      status,
      start_date: iso(start),
      end_date: iso(end),
      mine: at % 20 === 0,
    });
  }
  const from = marker === null ? 0 : Number(marker);
  const hosts = bars.slice(from, from + limit).map((of, at) => ({
    id: String(from + at + 1),
    name: `r${Math.floor((from + at) / 40)}-h${(from + at) % 40}`,
    pool: "freepool",
    group: "freepool",
    status: "open",
    power: "on",
    bars: of,
  }));
  const next = from + limit < HOSTS ? String(from + limit) : null;
  return {
    calendar: {
      start: iso(now - 4 * 24 * HOUR),
      end: iso(now + 20 * 24 * HOUR),
      now: iso(now),
      revision: "1",
      bucket_minutes: null,
      hosts,
      leases,
      next,
    },
  };
}

let browser: Browser;
let service: Service | null = null;
let url = process.env.ALLOT_SCALE_URL;
beforeAll(async () => {
  browser = await launch();
  if (url) return;
  service = await new Service((of) => ["serve", "--listen", `127.0.0.1:${of.port}`, "--database", "memory"]).start();
  url = service.url;
});
afterAll(async () => {
  await browser?.close();
  await service?.end();
});

const FRAMES = 120;

/** Scrolls in each of `FRAMES` frames, or turns the wheel to pan or zoom. */
async function everyFrame(page: Page, what: string): Promise<void> {
  await page.evaluate(
    ([kind, frames]) =>
      new Promise<void>((done) => {
        const scroller = document.querySelector(".scroller")!;
        let frame = 0;
        const step = (): void => {
          if (frame++ >= frames) return done();
          const back = frame % 40 >= 20;
          if (kind === "scroll") scroller.scrollTop += back ? -260 : 300;
          else
            scroller.dispatchEvent(
              new WheelEvent("wheel", {
                deltaY: kind === "zoom" ? (back ? -60 : 60) : 0,
                deltaX: kind === "zoom" ? 0 : back ? -60 : 60,
                ctrlKey: kind === "zoom",
                clientX: 700,
                clientY: 300,
                bubbles: true,
                cancelable: true,
              }),
            );
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      }),
    [what, FRAMES] as const,
  );
}

it("a calendar of 2,000 hosts and 20,000 leases draws what is visible", async () => {
  const now = Date.now();
  const page = await open(browser);
  if (service) {
    const answers = [calendar(now, 1000, null), calendar(now, 1000, "1000")].map((answer) => JSON.stringify(answer));
    await page.route("**/v1/calendar?**", (route) =>
      route.fulfill({
        contentType: "application/json",
        body: answers[route.request().url().includes("marker=1000") ? 1 : 0] ?? "",
      }),
    );
  }
  const figures: string[] = [];
  for (const load of ["first load", "again"]) {
    const began = Date.now();
    await page.goto(`${url}/`);
    await page.locator("[role=treegrid]").waitFor();
    await page.getByText("2000 hosts").first().waitFor({ timeout: 90_000 });
    const drawn = Date.now() - began;
    const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
    figures.push(`${load}: first paint after ${Math.round(painted)} ms, all hosts after ${drawn} ms`);
  }
  // Only visible rows have elements.
  expect(await page.locator("[role=rowgroup] > [role=row]").count()).toBeLessThan(60);
  expect(Number(await page.locator("[role=treegrid]").getAttribute("aria-rowcount"))).toBeGreaterThanOrEqual(2001);
  await pause(500);
  for (const what of ["scroll", "pan", "zoom"]) {
    const { script, longest } = await mainThread(browser, page, () => everyFrame(page, what));
    figures.push(`${what}: ${(script / FRAMES).toFixed(1)} ms of script a frame, longest task ${longest.toFixed(1)} ms`);
  }
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  const heap = metrics.find((metric) => metric.name === "JSHeapUsedSize")?.value ?? 0;
  figures.push(`memory ${Math.round(heap / 1e6)} MB`);
  console.log(figures.join("\n"));
  expect(await page.locator(".scroller").evaluate((element) => element.scrollTop)).toBeGreaterThan(1000);
  expect(page.wrong).toEqual([]);
  await page.context().close();
}, 300_000);
