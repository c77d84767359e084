// Tests of operators' views in a browser: placement questions, drift, prices, a large fleet at the scale of a year, and
// preemption for a lease.

import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faults, HOUR, hosts, point, rfc3339, visit } from "./page";
import { demonstration, browser as launch, open, out, Service, until } from "./service";

const node = (name: string, role: string, free: number): string =>
  `${name}.x|16384|0|${free}|100000|90000|8|${role}|u|1||N|0|0|1.0`;
const instance = (name: string, secondary: string): string =>
  `${name}.x|1024|1024|1|running|Y|n1.x|${secondary}.x|drbd||1|-|N`;
/** Three nodes. The first one has all instances. */
const CLUSTER = [
  "g|u|preferred||",
  "",
  node("n1", "M", 12_288),
  node("n2", "N", 16_384),
  node("n3", "N", 16_384),
  "",
  instance("i1", "n2"),
  instance("i2", "n3"),
  instance("i3", "n2"),
  instance("i4", "n3"),
  "",
  "",
  "|1024,1,1024,1,1,1|128,1,1024,1,1,1;8192,4,65536,16,8,12|drbd,plain|4.0|32.0",
  "",
].join("\n");

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

const serviceNow = async (service: Service): Promise<number> =>
  Date.parse((await service.ask<{ calendar: { now: string } }>("GET", "/v1/calendar?limit=1")).calendar.now);

describe("with the demonstration's fleet", () => {
  let service: Service;
  let page: Page & { wrong: string[] };
  demonstration(
    () => browser,
    (started, opened) => ([service, page] = [started, opened]),
  );
  const choose = (of: Page): Promise<void> =>
    of
      .locator("input[type=file]")
      .setInputFiles({ name: "cluster.data", mimeType: "text/plain", buffer: Buffer.from(CLUSTER) });

  it("what would leave a host of the fleet is asked from the list of hosts", async () => {
    const running = async (): Promise<string[]> => {
      type Running = { instances: { host: string | null }[] };
      const { instances } = await service.ask<Running>("GET", "/v1/instances");
      return instances.flatMap(({ host }) => host ?? []);
    };
    await until("an instance runs somewhere", async () => (await running()).length > 0);
    const [name = ""] = await running();
    // Hosts without instances have no link.
    await visit(page, service, "#/fleet?find=r2-h01");
    await page.getByText("r2-h01").first().waitFor();
    expect(await page.getByRole("link", { name: "Plan drain" }).count()).toBe(0);
    await page.getByLabel("Find by name or capability").fill(name);
    await page.getByRole("link", { name: `Plan drain of ${name}` }).first().click();
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("heading", { name: "Other nodes" }).waitFor();
    const { drain } = await service.ask<{ drain: { nodes: { name: string }[]; steps: object[]; stays: object[] } }>(
      "POST",
      "/v1/placement/drain",
      { fleet: true, nodes: [name] },
    );
    expect(drain.nodes.map((node) => node.name)).toEqual([name]);
    await page.screenshot({ path: join(out, "fleet-drain-light.png"), fullPage: true });
    await visit(page, service, "#/placement/balance?of=fleet");
    await page.getByText("Find moves that balance a group").waitFor();
    await page.getByRole("button", { name: "Run" }).click();
    // The demo doesn't always have a regular instance in the pool.
    await page.getByText(/^(Score by component|No instances\.)$/).first().waitFor();
    await page.screenshot({ path: join(out, "fleet-balance-light.png"), fullPage: true });
    expect(await faults(page)).toEqual([]);
  });

  it("the questions about a cluster are answered as the commands answer them", async () => {
    await visit(page, service, "#/placement");
    expect(await page.getByRole("button", { name: "Run" }).isDisabled()).toBe(true);
    await choose(page);
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("heading", { name: /moves in group g/ }).waitFor();
    const { balance } = await service.ask<{ balance: { moves: { instance: string; score: number }[] } }>(
      "POST",
      "/v1/placement/balance",
      { text: CLUSTER },
    );
    expect(balance.moves.length).toBeGreaterThan(1);
    const rows = page.locator("table").first().locator("tbody tr");
    expect(await rows.count()).toBe(balance.moves.length);
    for (const [at, move] of balance.moves.entries()) {
      const text = await rows.nth(at).textContent();
      expect(text).toContain(move.instance);
      expect(text).toContain(move.score.toFixed(4));
    }
    await page.getByText("Score by component").waitFor();
    await page.screenshot({ path: join(out, "balance-light.png"), fullPage: true });
    expect(await faults(page)).toEqual([]);

    await page.getByRole("link", { name: "Drain" }).click();
    await page.locator("input[name=nodes]").fill("n1, nosuch");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText('"nosuch" names no node of the cluster').waitFor();
    await page.locator("input[name=nodes]").fill("n1");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/^Yes, after \d+ moves?\.$/).waitFor();
    await page.screenshot({ path: join(out, "drain-light.png"), fullPage: true });

    await page.getByRole("link", { name: "What if" }).click();
    await page.locator("input[name=lose]").fill("n3");
    await page.locator("input[name=add_nodes]").fill("2,100g,16g,8@g");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("Nodes failing N+1").waitFor();
    await page.screenshot({ path: join(out, "whatif-light.png"), fullPage: true });

    await page.getByRole("link", { name: "Fit" }).click();
    await page.locator("input[name=shape]").fill("8g,8g,1");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("Single changes that would add capacity").waitFor();
    await page.getByRole("heading", { name: "; no way was found for more" }).waitFor();
    await page.locator("input[name=count]").fill("50");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("heading", { name: "No: no way was found for more than " }).waitFor();
    await page.screenshot({ path: join(out, "fit-light.png"), fullPage: true });
    expect(await faults(page)).toEqual([]);
    expect(page.wrong.splice(0)).toEqual([]);
  }, 180_000);

  it("answers about clusters fit a phone, in the dark as well", async () => {
    const phone = await open(browser, { width: 390, height: 844, dark: true });
    await visit(phone, service, "#/placement");
    await choose(phone);
    await phone.getByRole("button", { name: "Run" }).click();
    await phone.getByText("Score by component").waitFor();
    await phone.screenshot({ path: join(out, "balance-phone-dark.png"), fullPage: true });
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    expect(await faults(phone)).toEqual([]);
    expect(phone.wrong).toEqual([]);
    await phone.context().close();
  }, 120_000);

  it("settings and limits are shown, those that the demonstration has changed at first", async () => {
    await visit(page, service, "#/admin");
    const settings = page.locator("section").filter({ has: page.getByRole("heading", { name: "Settings and limits" }) });
    const row = (key: string) => settings.getByRole("row").filter({ hasText: key });
    await row("usage.currency").getByText("EUR").waitFor();
    expect(await row("limits.page").count()).toBe(0);
    await settings.getByLabel("Find a setting or limit").fill("limits.page");
    await row("limits.page").getByText("1000", { exact: true }).waitFor();
    expect(await row("usage.currency").count()).toBe(0);
  });

  it("what a lease will cost is said before it is made", async () => {
    await visit(page, service, "#/leases/new");
    await page.locator("input[name=length]").fill("10h");
    await page.getByText("Available", { exact: true }).waitFor();
    await page.getByText("Estimated cost: 12.00 EUR").waitFor();
  });

  it("the fleet says what power was used, and looks for drift when it is asked", async () => {
    await visit(page, service, "#/fleet");
    await page.getByText("Power, last 7 days").waitFor();
    await page.getByRole("button", { name: "Check now" }).click();
    await page.getByText("No drift.").waitFor();
    await page.screenshot({ path: join(out, "drift-light.png"), fullPage: true });
    expect(page.wrong.splice(0)).toEqual([]);
  });
});

it("more than 200 hosts and more than two months are drawn by how much is reserved", async () => {
  const service = await new Service((of) => [
    "serve",
    "--listen",
    `127.0.0.1:${of.port}`,
    "--database",
    "memory",
    "--simulated-racks",
    "1",
    "--simulated-hosts-per-rack",
    "210",
    "--simulated-timing",
    "immediate",
  ]).start();
  for (let id = 1; id <= 210; id += 1) await service.ask("POST", "/v1/os-hosts", { id: String(id) });
  const from = Date.now() + 10 * 24 * HOUR;
  await service.ask("POST", "/v1/leases", {
    name: "long",
    start_date: rfc3339(from),
    end_date: rfc3339(from + 60 * 24 * HOUR),
    reservations: [hosts(1, { hypervisor_properties: '["==", "$hypervisor_hostname", "r1-h02"]' })],
  });
  const page = await open(browser);
  await visit(page, service, "#/");
  await page.getByText("210 hosts").first().waitFor();
  const asked = page.waitForRequest((request) => /\/v1\/calendar\?.*bucket=\d/.test(request.url()));
  await page.getByRole("button", { name: "Year", exact: true }).click();
  // Request the body again, because the browser doesn't keep bodies for tests.
  const told = await service.ask<{
    calendar: { bucket_minutes: number; hosts: { name: string; bars?: unknown; buckets: number[] }[] };
  }>("GET", (await asked).url().slice(service.url.length));
  expect(told.calendar.hosts.every((host) => host.bars === undefined)).toBe(true);
  const reserved = told.calendar.hosts.filter((host) => host.buckets.some((share) => share > 0));
  expect(reserved.map((host) => host.name)).toEqual(["r1-h02"]);
  const color = async (host: string): Promise<number[]> => {
    const { x, y } = await point(page, host, from + 30 * 24 * HOUR);
    return page.evaluate(
      ([left, top]) => {
        const canvas = document.querySelector<HTMLCanvasElement>(".scroller canvas")!;
        const box = canvas.getBoundingClientRect();
        const scale = canvas.width / box.width;
        const at = [Math.round((left - box.left) * scale), Math.round((top - box.top) * scale)] as const;
        return [...canvas.getContext("2d")!.getImageData(at[0], at[1], 1, 1).data];
      },
      [x, y] as const,
    );
  };
  const drawn = async (): Promise<boolean> => `${await color("r1-h02")}` !== `${await color("r1-h03")}`;
  await until("the reserved host is drawn unlike the others", drawn);
  await page.screenshot({ path: join(out, "year-light.png") });
  expect(await color("r1-h01")).toEqual(await color("r1-h03"));
  expect(page.wrong).toEqual([]);
  await page.context().close();
  await service.end();
}, 180_000);

it("preemptible instances are seen to leave before a lease starts", async () => {
  const service = await Service.demo(300).start();
  const page = await open(browser);
  const flavor_properties = { "blazar:preemptible": "true" };
  const size = { vcpus: 1, memory_mb: 512, disk_gb: 1, flavor_properties };
  const spot = (await service.ask<{ instance: { id: string } }>("POST", "/v1/instances", { name: "spot", ...size }))
    .instance;
  let host = "";
  await until("the instance runs", async () => {
    const { instance: now } = await service.ask<{ instance: { status: string; host: string } }>(
      "GET",
      `/v1/instances/${spot.id}`,
    );
    host = now.host;
    return now.status === "ACTIVE";
  });
  await visit(page, service, "#/instances?find=spot");
  const row = page.locator("tbody tr").filter({ hasText: "spot" });
  await row.getByText("preemptible").waitFor();
  const start = (await serviceNow(service)) + 2 * HOUR;
  const { lease } = await service.ask<{ lease: { id: string } }>("POST", "/v1/leases", {
    name: "takes-over",
    start_date: rfc3339(start),
    end_date: rfc3339(start + 6 * HOUR),
    reservations: [hosts(1, { hypervisor_properties: `["==", "$hypervisor_hostname", "${host}"]` })],
  });
  await row.getByText(/notified at \d{4}-\d\d-\d\d \d\d:\d\d/).waitFor();
  await page.screenshot({ path: join(out, "leaving-light.png") });
  // It moves to another host if there is capacity, or ends. In both cases it leaves this host before the lease starts.
  await row.getByText(host, { exact: true }).waitFor({ state: "detached", timeout: 90_000 });
  await visit(page, service, `#/leases/${lease.id}`);
  await page.locator("h1 ~ *, .page-head").getByText("active", { exact: true }).first().waitFor({ timeout: 90_000 });
  expect(page.wrong).toEqual([]);
  await page.context().close();
  await service.end();
}, 240_000);
