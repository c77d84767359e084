// Tests of the console in a browser, with the real service.

import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { target, typesOf } from "../scripts/schema.mjs";
import { drag, faults, HOUR, hosts, point, rfc3339, settled, visit } from "./page";
import { demonstration, browser as launch, open, out, pause, Service } from "./service";

const VIEWS = {
  calendar: "#/",
  leases: "#/leases",
  new: "#/leases/new",
  fleet: "#/fleet",
  instances: "#/instances",
  placement: "#/placement",
  usage: "#/usage",
  admin: "#/admin",
};
const HOSTILE = `<img src=x onerror="window.hacked=1"><script>hacked=1</script> \u05d0\u05d1\u05d2 {{7}}`;

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

interface Lease {
  id: string;
  name: string;
  status: string;
  start_date: string;
  end_date: string;
  end_action: string;
  reservations: { min?: number; hosts?: string[] }[];
}

const forInput = (time: number): string => new Date(time).toISOString().slice(0, 16);

describe("with the demonstration's fleet", () => {
  let service: Service;
  let page: Page & { wrong: string[] };
  demonstration(
    () => browser,
    (started, opened) => ([service, page] = [started, opened]),
  );
  afterEach(() => {
    expect(page.wrong.splice(0)).toEqual([]);
  });
  const leases = async (): Promise<Lease[]> => (await service.ask<{ leases: Lease[] }>("GET", "/v1/leases")).leases;
  const named = async (name: string): Promise<Lease> => {
    const found = (await leases()).find((lease) => lease.name === name);
    if (!found) throw new Error(`there is no lease ${name}`);
    return found;
  };

  it("its types are those of the service", async () => {
    const document = await service.ask<unknown>("GET", "/openapi.json");
    const written = await typesOf(document);
    expect(readFileSync(target, "utf8") === written, "run `cargo xtask console --schema`").toBe(true);
  });

  it("the page allows nothing inline, and lists the licences of its parts", async () => {
    const answer = await fetch(service.url, { headers: { Accept: "text/html" } });
    const policy = answer.headers.get("Content-Security-Policy") ?? "";
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    const text = await answer.text();
    expect(text).not.toMatch(/<script(?![^>]* src=)|style=|onload=/);
    const licences = await (await fetch(`${service.url}/console/assets/licences.txt`)).text();
    const documented = readFileSync(new URL("../../docs/how-to/console.md", import.meta.url), "utf8");
    const parts = [...licences.matchAll(/^(\S+) \S+ \((\S+)\)$/gm)];
    expect(parts.length).toBeGreaterThan(0);
    for (const [, name, licence] of parts) expect(documented).toContain(`| ${name} | ${licence} |`);
  });

  it("the first load is small", async () => {
    const sizes: number[] = [];
    const note = async (url: string): Promise<void> => {
      const answer = await fetch(url, { headers: { Accept: "text/html", "Accept-Encoding": "gzip" } });
      const text = await answer.text();
      const { gzipSync } = await import("node:zlib");
      sizes.push(gzipSync(text).length);
      if (url === `${service.url}/`)
        for (const [, part] of text.matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)) await note(service.url + part);
    };
    await note(`${service.url}/`);
    expect(sizes.length).toBeGreaterThanOrEqual(4);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(300_000);
  });

  it("every view is without serious faults in both themes and on a phone, and is pictured", async () => {
    const lattice = await named("lattice");
    const views = { ...VIEWS, lease: `#/leases/${lattice.id}`, drawer: `#/?lease=${lattice.id}` };
    const found: string[] = [];
    for (const [width, theme] of [
      [1280, "light"],
      [1280, "dark"],
      [390, "light"],
      [390, "dark"],
    ] as const) {
      const themed = await open(browser, { dark: theme === "dark", width });
      const narrow = width < 700;
      for (const [name, hash] of Object.entries(views)) {
        await visit(themed, service, hash);
        await pause(300);
        const picture = `${name}${narrow ? "-phone" : ""}-${theme}`;
        await themed.screenshot({ path: join(out, `${picture}.png`), fullPage: narrow });
        found.push(...(await faults(themed)).map((fault) => `${picture}: ${fault}`));
        const wide = await themed.evaluate(() => document.documentElement.scrollWidth);
        if (wide > width) found.push(`${picture}: ${wide} px wide`);
        if (narrow && (await themed.locator("canvas").count()) > 0) found.push(`${picture}: no list`);
      }
      found.push(...themed.wrong);
      await themed.context().close();
    }
    expect(found).toEqual([]);
  }, 360_000);

  it("the README's pictures show what they say", async () => {
    const images = new URL("../../docs/images/", import.meta.url);
    const picture = async (page: Page, name: string): Promise<void> => {
      await pause(400);
      const path = join(out, `${name}.png`);
      await page.screenshot({ path });
      if (process.env.ALLOT_BLESS !== "1") return;
      mkdirSync(images, { recursive: true });
      copyFileSync(path, new URL(`${name}.png`, images));
    };
    const light = await open(browser, { width: 1200, height: 640 });
    await visit(light, service, "#/");
    await light.getByLabel("Group by").selectOption("rack");
    await light.getByRole("rowheader", { name: "r1, 8 hosts" }).waitFor({ state: "attached" });
    await picture(light, "calendar");
    const dark = await open(browser, { width: 1200, height: 640, dark: true });
    await visit(dark, service, "#/leases/new");
    await dark.locator("input[name=lease-name]").fill("training");
    await dark.getByLabel("At least").fill("20");
    await dark.getByText("Alternatives", { exact: true }).waitFor();
    await picture(dark, "refused");
    await light.context().close();
    await dark.context().close();
    // The checkout must have the pictures, and the README must show them.
    const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
    for (const name of ["calendar", "refused"]) {
      expect(readme).toContain(`docs/images/${name}.png`);
      expect(readFileSync(new URL(`${name}.png`, images)).length).toBeGreaterThan(10_000);
    }
  });

  it("a lease is made by the form, whatever its name is", async () => {
    await visit(page, service, "#/leases/new");
    await page.locator("input[name=lease-name]").fill(HOSTILE);
    await page.getByText("Available", { exact: true }).waitFor();
    await page.getByText("24 hosts match").waitFor();
    await page.getByRole("button", { name: "Create lease" }).click();
    await page.waitForFunction(() => /#\/leases\/[0-9a-f-]{36}/.test(location.hash));
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(await page.locator("h1 .name").textContent()).toBe(HOSTILE);
    for (const hash of ["#/", "#/leases", "#/fleet", "#/usage"]) await visit(page, service, hash);
    expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
    expect((await leases()).some((lease) => lease.name === HOSTILE)).toBe(true);
  });

  it("names of 10,000 characters, from right to left and with markup, do no harm", async () => {
    const hostile = `\u202e<svg onload="window.hacked=1">\u05d0\u05d1 ${"\u05d2<b>x</b>".repeat(1200)}`.slice(
      0,
      10_000,
    );
    const strange = await open(browser);
    await strange.route(/\/v1\/(calendar\?|(leases|instances)(\?|\/[0-9a-f-]{36}|$))/, async (route) => {
      const answer = await route.fetch();
      const text = (await answer.text()).replaceAll(
        /"(name|project_id)":"[^"]*"/g,
        (_, field: string) => `"${field}":${JSON.stringify(hostile)}`,
      );
      await route.fulfill({ response: answer, body: text });
    });
    const lattice = await named("lattice");
    for (const [name, hash] of Object.entries({
      ...VIEWS,
      lease: `#/leases/${lattice.id}`,
      drawer: `#/?lease=${lattice.id}`,
    })) {
      await visit(strange, service, hash);
      await pause(200);
      await strange.screenshot({ path: join(out, `hostile-${name}.png`) });
      expect(await strange.evaluate(() => document.documentElement.scrollWidth), name).toBeLessThanOrEqual(1280);
      expect(await strange.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
    }
    expect(strange.wrong).toEqual([]);
    await strange.context().close();
  });

  it("a wrong expression is named where it is typed, and what was typed is there after a reload", async () => {
    await visit(page, service, "#/leases/new");
    await page.locator("input[name=lease-name]").fill("kept");
    await page.locator("input[name=where]").fill("rack=r1 and");
    await page.locator("#wrong-where").waitFor();
    expect(await page.getByRole("button", { name: "Create lease" }).isDisabled()).toBe(true);
    await page.locator("input[name=where]").fill("rack=r1");
    await page.getByText("8 hosts match").waitFor();
    await page.reload();
    await settled(page);
    expect(await page.locator("input[name=lease-name]").inputValue()).toBe("kept");
    expect(await page.locator("input[name=where]").inputValue()).toBe("rack=r1");
    await page.getByRole("button", { name: "Reset" }).click();
    expect(await page.locator("input[name=lease-name]").inputValue()).toBe("");
  });

  it("a conflict is answered with offers, and one is accepted", async () => {
    await visit(page, service, "#/leases/new");
    await page.locator("input[name=lease-name]").fill("counter-offer");
    await page.getByLabel("At least").fill("24");
    await page.getByText("Not enough hosts available").waitFor();
    await page.getByText("Alternatives", { exact: true }).waitFor();
    await page.screenshot({ path: join(out, "refused-light.png") });
    await page.getByRole("button", { name: "Create lease" }).click();
    await page.getByText("held for you until").first().waitFor();
    await page.locator(".offers li").filter({ hasText: "Start later" }).getByRole("button", { name: "Accept" }).click();
    await page.waitForFunction(() => /#\/leases\/[0-9a-f-]{36}/.test(location.hash));
    const lease = await named("counter-offer");
    expect(lease.reservations[0]?.min).toBe(24);
    expect(Date.parse(`${lease.start_date}Z`)).toBeGreaterThan(Date.now() + HOUR);
    await service.ask("DELETE", `/v1/leases/${lease.id}`);
  });

  it("a lease is made by dragging over free time, on those hosts", async () => {
    await visit(page, service, "#/");
    const day = 24 * HOUR;
    const start = Math.ceil((Date.now() + 5 * day) / HOUR) * HOUR;
    await drag(page, await point(page, "r1-h04", start), await point(page, "r1-h05", start + 12 * HOUR));
    await page.getByText("Available", { exact: true }).waitFor();
    await page.getByText("r1-h04, r1-h05").waitFor();
    await page.screenshot({ path: join(out, "dragged-light.png") });
    await page.locator("input[name=lease-name]").fill("dragged");
    await page.getByRole("button", { name: "Create lease" }).click();
    await page.locator(".drawer h2").filter({ hasText: "dragged" }).waitFor();
    const lease = await named("dragged");
    expect(lease.reservations[0]?.hosts?.sort()).toEqual(["r1-h04", "r1-h05"]);
    expect(Math.abs(Date.parse(`${lease.start_date}Z`) - start)).toBeLessThan(HOUR);
    expect(Date.parse(`${lease.start_date}Z`) % (15 * 60_000)).toBe(0);
  });

  it("an edge that is dragged becomes another end", async () => {
    const lease = await named("dragged");
    const end = Date.parse(`${lease.end_date}Z`);
    await visit(page, service, "#/");
    await page.keyboard.press("Escape");
    const to = await point(page, "r1-h04", end + 6 * HOUR);
    const tried = page.waitForResponse((answer) => answer.url().includes(`${lease.id}?dry_run=true`));
    await drag(page, await point(page, "r1-h04", end), to, async () => {
      // The answer must arrive during the drag.
      expect((await tried).status()).toBe(200);
      await pause(300);
      await page.screenshot({ path: join(out, "edge-light.png") });
    });
    await page.getByText("Available: ends").waitFor();
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByText("Changes saved.").waitFor();
    const later = Date.parse(`${(await named("dragged")).end_date}Z`);
    expect(later).toBeGreaterThan(end + 4 * HOUR);
    expect(later).toBeLessThan(end + 8 * HOUR);
  });

  it("a lease is renegotiated and ended on its page", async () => {
    const before = await named("dragged");
    await visit(page, service, `#/leases/${before.id}`);
    const end = Date.parse(`${before.end_date}Z`) + 24 * HOUR;
    await page.getByLabel("New end").fill(forInput(end));
    await page.getByText("Available: ends 1 d later.").waitFor();
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByText("Changes saved.").waitFor();
    expect(Date.parse(`${(await named("dragged")).end_date}Z`)).toBe(end);
    await page.getByLabel("When the lease ends, instances are").selectOption("migrated");
    await page.getByText("Available: instances migrated at end.").waitFor();
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByText("Changes saved.").waitFor();
    expect((await named("dragged")).end_action).toBe("migrate");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("The lease is deleted before its start").waitFor();
    await page.screenshot({ path: join(out, "confirm-light.png") });
    await page.getByRole("button", { name: "Delete lease" }).click();
    await page.waitForFunction(() => location.hash === "#/leases");
    expect((await leases()).some((lease) => lease.id === before.id)).toBe(false);
  });

  it("an edge that is dragged too far is met with an offer on the calendar", async () => {
    const at = Math.ceil((Date.now() + 4.5 * 24 * HOUR) / HOUR) * HOUR;
    const only = hosts(1, { hypervisor_properties: '["==", "$hypervisor_hostname", "r1-h04"]' });
    const make = (name: string, start: number, end: number): Promise<unknown> =>
      service.ask("POST", "/v1/leases", {
        name,
        start_date: rfc3339(start),
        end_date: rfc3339(end),
        reservations: [only],
      });
    await make("stretched", at, at + 6 * HOUR);
    await make("in the way", at + 18 * HOUR, at + 30 * HOUR);
    await visit(page, service, "#/");
    await page.getByText("24 hosts").first().waitFor();
    await drag(page, await point(page, "r1-h04", at + 6 * HOUR), await point(page, "r1-h04", at + 24 * HOUR));
    await page.locator(".drawer").getByText("Alternatives", { exact: true }).waitFor();
    await pause(600);
    await page.screenshot({ path: join(out, "edge-offer-light.png") });
    const offer = await point(page, "r1-h04", at + 16 * HOUR);
    await page.mouse.click(offer.x, offer.y);
    await page.getByText("Available: ends 12 h later.").waitFor();
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByText("Changes saved.").waitFor();
    expect(Date.parse(`${(await named("stretched")).end_date}Z`)).toBe(at + 18 * HOUR);
    for (const name of ["stretched", "in the way"])
      await service.ask("DELETE", `/v1/leases/${(await named(name)).id}`);
  });

  it("the next free slot is found and becomes a draft", async () => {
    await visit(page, service, "#/");
    await page
      .locator("h1")
      .first()
      .click({ force: true })
      .catch(() => {});
    await page.keyboard.press("/");
    await page.getByLabel("Hosts", { exact: true }).fill("20");
    await page.getByLabel("Duration", { exact: true }).fill("6h");
    await page.getByRole("button", { name: "Find", exact: true }).click();
    await page.locator(".found li button").first().waitFor();
    await page.screenshot({ path: join(out, "found-light.png") });
    await page.locator(".found li button").first().click();
    await page.getByText("Available", { exact: true }).waitFor();
  });

  it("the keyboard is enough", async () => {
    await visit(page, service, "#/");
    await page.locator(".scroller").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    const active = await page.locator(".scroller").getAttribute("aria-activedescendant");
    expect(active).toMatch(/^bar-1-0$/);
    expect(await page.locator(`#${active}`).textContent()).toContain("ci-runners (web), active, from ");
    const before = await page.evaluate(() => location.hash);
    await page.keyboard.press("+");
    await page.waitForFunction((old) => location.hash !== old && location.hash.includes("from="), before);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /ci-runners/ }).waitFor();
    await page.goBack();
    await page.locator(".scroller").focus();
    await page.keyboard.press("n");
    await page.getByRole("heading", { level: 1, name: "New lease" }).waitFor();
  });

  it("times are those of the zone that is chosen", async () => {
    const end = Date.parse(`${(await named("lattice")).end_date}Z`);
    const row = page.locator("tr").filter({ hasText: /^lattice(?!-)/ });
    await visit(page, service, "#/leases");
    await row.getByText(new Date(end).toISOString().slice(0, 16).replace("T", " ")).waitFor();
    await page.getByLabel("Time zone").selectOption("Europe/Paris");
    const paris = new Intl.DateTimeFormat("sv-SE", {
      timeZone: "Europe/Paris",
      dateStyle: "short",
      timeStyle: "short",
    }).format(end);
    await row.getByText(paris).waitFor();
    await page.getByLabel("Time zone").selectOption("UTC");
  });

  it("an answer of 500 or none is said, and asked for again", async () => {
    let failing = true;
    await page.route("**/v1/leases?**", (route) =>
      failing
        ? route.fulfill({
            status: 500,
            contentType: "application/json",
            body: '{"error_code":500,"error_message":"broken"}',
          })
        : route.continue(),
    );
    await page.goto(`${service.url}/#/leases`);
    await page.reload();
    await page.getByText("Error: 500 broken").waitFor();
    failing = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("link", { name: "lattice", exact: true }).waitFor();
    await page.unroute("**/v1/leases?**");
    await page.route("**/v1/usage?**", async (route) => {
      await pause(5000);
      await route.continue();
    });
    await page.goto(`${service.url}/#/usage`);
    await page.getByText("Still loading").waitFor();
    await page
      .getByRole("cell", { name: "physics" })
      .or(page.getByRole("rowheader", { name: "physics" }))
      .first()
      .waitFor();
    await page.unrouteAll();
  });

  it("a service that is killed and started again is noticed, with the page open", async () => {
    await visit(page, service, "#/leases");
    await page.getByRole("link", { name: "lattice", exact: true }).waitFor();
    await service.kill();
    await page.getByText("Connection lost.").waitFor({ timeout: 90_000 });
    await page.getByRole("link", { name: "lattice", exact: true }).waitFor();
    await service.start();
    const name = "made while the page was open";
    await service.ask("POST", "/v1/leases", {
      name,
      start_date: rfc3339(Date.now() + 20 * 24 * HOUR),
      end_date: rfc3339(Date.now() + 21 * 24 * HOUR),
      reservations: [hosts(1)],
    });
    await page.getByRole("link", { name, exact: true }).waitFor({ timeout: 90_000 });
    await page.getByText("Connection lost.").waitFor({ state: "detached" });
  }, 180_000);
});

describe("with the demonstration's fleet under a fast clock", () => {
  let service: Service;
  beforeAll(async () => {
    service = await Service.demo(300).start();
  });
  afterAll(async () => {
    await service?.end();
  });

  it("a lease starts while the page is open", async () => {
    // It starts half an hour after the demo's present, which takes a few seconds at this speed.
    const page = await open(browser);
    await visit(page, service, "#/leases?find=load-test");
    const row = page.locator("tbody tr").first();
    await row.getByText("pending").waitFor();
    await row.getByText("active", { exact: true }).waitFor({ timeout: 90_000 });
    expect(page.wrong).toEqual([]);
    await page.context().close();
  }, 180_000);
});

describe("with a service that asks who somebody is", () => {
  let service: Service;
  const FOREIGN = "foreign-secret-name";
  beforeAll(async () => {
    service = await (await Service.guarded()).start();
    const root = await service.token("root");
    for (const host of ["r1-h01", "r1-h02", "r2-h01"])
      await service.ask("POST", "/v1/os-hosts", { name: host, rack: host.slice(0, 2) }, root);
    const from = Date.now() + 2 * HOUR;
    const lease = (name: string) => ({
      name,
      start_date: rfc3339(from),
      end_date: rfc3339(from + 24 * HOUR),
      reservations: [hosts(1)],
    });
    await service.ask("POST", "/v1/leases", lease(FOREIGN), root);
    await service.ask("POST", "/v1/leases", lease("of-ann"), await service.token("ann"));
  });
  afterAll(async () => {
    await service?.end();
  });

  const signIn = async (page: Page, user: string, password = "correct horse battery"): Promise<void> => {
    await page.getByLabel("User", { exact: true }).fill(user);
    await page.getByLabel("Password", { exact: true }).fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
  };

  it("nobody sees anything before signing in, and a wrong password is said to be wrong", async () => {
    for (const dark of [false, true]) {
      const page = await open(browser, { dark });
      await page.goto(`${service.url}/#/leases`);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await page.screenshot({ path: join(out, `signin-${dark ? "dark" : "light"}.png`) });
      expect(await faults(page)).toEqual([]);
      await signIn(page, "ann", "wrong");
      await page.getByText("Wrong user name or password.").waitFor();
      expect(await page.getByLabel("User", { exact: true }).inputValue()).toBe("ann");
      expect(page.wrong).toEqual([]);
      await page.context().close();
    }
  });

  it("a member sees what is free and the own leases, and no name of others anywhere in the traffic", async () => {
    const page = await open(browser);
    const traffic: string[] = [];
    // Read each body on its way, because the browser can drop it before it is read later.
    await page.route(
      (url) => !url.pathname.endsWith("/calendar/changes"),
      async (route) => {
        const response = await route.fetch();
        traffic.push(`${route.request().url()} ${await response.text()}`);
        await route.fulfill({ response });
      },
    );
    await page.goto(`${service.url}/`);
    await signIn(page, "ann");
    await settled(page);
    await page.locator("canvas").waitFor();
    await pause(300);
    await page.screenshot({ path: join(out, "member-light.png") });
    expect(await page.getByRole("link", { name: "Fleet" }).count()).toBe(0);
    expect(await page.getByRole("link", { name: "Admin" }).count()).toBe(0);
    for (const hash of Object.values(VIEWS)) await visit(page, service, hash);
    await visit(page, service, "#/leases");
    await page.getByRole("link", { name: "of-ann" }).waitFor();
    expect(await faults(page)).toEqual([]);
    expect(traffic.some((line) => line.includes("of-ann"))).toBe(true);
    expect(traffic.some((line) => line.includes("/v1/calendar?"))).toBe(true);
    expect(
      traffic.filter((line) => line.includes(FOREIGN) || (line.includes("r2-h01") && !line.includes("of-ann"))),
    ).toEqual([]);
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
    );
    expect(kept).not.toMatch(/correct horse|allot_session|gAAAA/);
    const [cookie] = (await page.context().cookies()).filter((one) => one.name === "allot_session");
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
    expect(page.wrong).toEqual([]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.context().close();
  });

  it("an administrator sees all of them, cordons a host and uncordons it", async () => {
    const page = await open(browser);
    await page.goto(`${service.url}/#/leases`);
    await signIn(page, "root");
    await page.getByRole("link", { name: FOREIGN }).waitFor();
    await page.getByRole("link", { name: "of-ann" }).waitFor();
    await visit(page, service, "#/fleet");
    await page.getByRole("button", { name: "Cordon r2-h01" }).click();
    await page.getByText("r2-h01 will take no new leases.").waitFor();
    await page.getByRole("button", { name: "Cordon host" }).click();
    await page.getByText("cordoned", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Uncordon r2-h01" }).click();
    await page.getByText("cordoned", { exact: true }).waitFor({ state: "detached" });
    expect(page.wrong).toEqual([]);
    await page.context().close();
  });

  it("a session that is over asks to sign in, and goes on where it was", async () => {
    const page = await open(browser);
    await page.goto(`${service.url}/#/leases`);
    await signIn(page, "ann");
    await page.getByRole("link", { name: "of-ann" }).waitFor();
    await page.context().clearCookies();
    await page.getByRole("link", { name: "Usage" }).click();
    await page.getByText("Session expired.").waitFor();
    await signIn(page, "ann");
    await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
    expect(page.wrong).toEqual([]);
    await page.context().close();
  });
});
