// Helpers for tests that use a page of the console.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import type { Service } from "./service";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Width of the column of names and height of the axis, as in `timeline.tsx`. */
const [LEFT, AXIS] = [168, 46];
export const HOUR = 3_600_000;

export const rfc3339 = (time: number): string => new Date(time).toISOString().replace(/\.\d+Z/, "Z");
export const hosts = (min: number, more: object = {}) => ({
  resource_type: "physical:host",
  min,
  max: min,
  hypervisor_properties: "",
  resource_properties: "",
  ...more,
});

/** Serious and critical accessibility violations, found by axe. */
export async function faults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe: run } = window as unknown as {
      axe: {
        run: (
          where: Document,
          options: object,
        ) => Promise<{
          violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
        }>;
      };
    };
    const { violations } = await run.run(document, { resultTypes: ["violations"] });
    const serious = violations.filter((violation) => violation.impact === "serious" || violation.impact === "critical");
    return serious.flatMap((violation) =>
      violation.nodes.slice(0, 5).map((node) => `${violation.id}: ${node.target.join(" ")}: ${node.failureSummary}`),
    );
  });
}

/** Waits until the view has content and isn't loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator("#content").waitFor();
  await page.waitForFunction(
    () => !document.querySelector(".waiting") && document.querySelector("#content")?.textContent !== "",
  );
}

export async function visit(page: Page, service: Service, hash: string): Promise<void> {
  await page.goto(`${service.url}/${hash}`);
  await settled(page);
}

/** Page coordinates of a time in the row of a host. */
export async function point(page: Page, host: string, time: number): Promise<{ x: number; y: number }> {
  await page.waitForFunction(() => location.hash.includes("from="));
  await page
    .locator("[role=rowheader]")
    .filter({ hasText: new RegExp(`^${host}$`) })
    .first()
    .waitFor({ state: "attached" });
  return page.evaluate(
    ([wanted, at, left, axis]) => {
      const query = new URLSearchParams(location.hash.split("?")[1]);
      const [from, to] = [Date.parse(query.get("from") ?? ""), Date.parse(query.get("to") ?? "")];
      const box = document.querySelector(".scroller canvas")!.getBoundingClientRect();
      const rows = [...document.querySelectorAll<HTMLElement>("[role=rowgroup] > [role=row]")];
      const row = rows.find((candidate) => candidate.querySelector("[role=rowheader]")?.textContent === wanted);
      const scrolled = document.querySelector(".scroller")!.scrollTop;
      return {
        x: box.left + left + ((at - from) / (to - from)) * (box.width - left),
        y: box.top + axis + Number(row?.dataset.middle) - scrolled,
      };
    },
    [host, time, LEFT, AXIS] as const,
  );
}

/** Drags from one point to another. `before` runs before the button is released. */
export async function drag(
  page: Page,
  from: { x: number; y: number },
  to: { x: number; y: number },
  before: () => Promise<void> = async () => {},
): Promise<void> {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2, { steps: 4 });
  await page.mouse.move(to.x, to.y, { steps: 4 });
  await before();
  await page.mouse.up();
}
