// Tests of the data that remains after signing out, and of tabs that stay open when another user signs in.

import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faults, visit } from "./page";
import { browser as launch, open, out, Service } from "./service";

const PASSWORD = "correct horse battery";

async function signIn(page: Page, user: string): Promise<void> {
  await page.getByLabel("User", { exact: true }).fill(user);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
}

const ANN = "ann · project physics";
const CARL = "carl · project chemistry";

describe("signing out and in again", () => {
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    browser = await launch();
    service = await (await Service.guarded()).start();
    await service.ask("POST", "/v1/os-hosts", { name: "r1-h01" }, await service.token("root"));
  });
  afterAll(async () => {
    await browser?.close();
    await service?.end();
  });

  /** Two tabs, both signed in as ann. */
  async function tabs(): Promise<[Page & { wrong: string[] }, Page]> {
    const one = await open(browser);
    await one.goto(service.url);
    await signIn(one, "ann");
    await one.getByText(ANN).waitFor();
    const two = await one.context().newPage();
    await two.goto(service.url);
    await two.getByText(ANN).waitFor();
    return [one, two];
  }
  /** Signs in without telling other tabs. */
  const become = (page: Page, user: string) =>
    page.context().request.post(`${service.url}/v1/session`, {
      headers: { "X-Allot-Console": "1" },
      data: { user, password: PASSWORD },
    });
  const leases = async (user: string): Promise<{ name: string }[]> =>
    (await service.ask<{ leases: { name: string }[] }>("GET", "/v1/leases", undefined, await service.token(user)))
      .leases;
  const stored = (page: Page) =>
    page.evaluate(() => [...Object.keys(localStorage), ...Object.keys(sessionStorage)].sort());
  const cached = (page: Page, path: string) =>
    page.evaluate(
      (wanted) =>
        fetch(wanted, { cache: "only-if-cached", mode: "same-origin" }).then(
          (answer) => answer.status,
          () => 504,
        ),
      path,
    );
  const type = async (page: Page, name: string): Promise<void> => {
    await visit(page, service, "#/leases/new");
    await page.locator("input[name=lease-name]").fill(name);
    await page.getByText("Available", { exact: true }).waitFor();
  };

  it("leaves nothing of the former user in any tab, and each tab follows", async () => {
    const [one, two] = await tabs();
    await two.evaluate(() => localStorage.setItem("other.app", "1"));
    await two.getByLabel("Time zone").selectOption("Europe/Paris");
    await type(two, "secret-of-ann");
    await visit(one, service, "#/leases?find=secret-of-ann");
    const asked = await one.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.name));
    const answers = asked.filter((name) => name.includes("/v1/") && !name.includes("/changes"));
    expect(answers.length).toBeGreaterThan(2);
    for (const path of answers) expect(await cached(one, path), path).toBe(504);

    await one.getByRole("button", { name: "Sign out" }).click();
    for (const page of [one, two]) {
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      expect(page.url()).toBe(`${service.url}/`);
      expect(await stored(page)).toEqual(["other.app"]);
    }
    await signIn(one, "carl");
    for (const page of [one, two]) {
      await page.getByText(CARL).waitFor();
      await visit(page, service, "#/leases/new");
      await page.locator("input[name=lease-name]").waitFor();
      expect(await page.locator("input[name=lease-name]").inputValue()).toBe("");
      expect(await page.getByText("Draft restored").count()).toBe(0);
      expect(await page.content()).not.toMatch(/secret-of-ann|physics/);
    }
    expect(one.wrong).toEqual([]);
    await one.context().close();
  });

  it("in another tab ends what a tab shows and follows for the former user", async () => {
    const [one, two] = await tabs();
    await type(two, "secret-of-ann");
    const streams: string[] = [];
    two.on("requestfailed", (asked) => streams.push(new URL(asked.url()).pathname));
    await become(one, "carl");
    await one.reload();
    await one.getByText(CARL).waitFor();
    await two.getByRole("heading", { name: "A different user is signed in" }).waitFor();
    await two.screenshot({ path: join(out, "user-changed-light.png") });
    expect(await faults(two)).toEqual([]);
    expect(await two.content()).not.toMatch(/secret-of-ann|physics/);
    expect(streams).toContain("/v1/calendar/changes");
    await two.getByRole("button", { name: "Continue as that user" }).click();
    await two.getByText(CARL).waitFor();
    expect(await two.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain("secret-of-ann");
    await one.context().close();
  });

  it("makes nothing for the next user of what the former one asked for", async () => {
    const [one, two] = await tabs();
    await type(two, "of-ann");
    await become(one, "carl");
    await two.getByRole("button", { name: "Create lease" }).click();
    await two.getByRole("heading", { name: "A different user is signed in" }).waitFor();
    expect([await leases("ann"), await leases("carl")]).toEqual([[], []]);
    await one.context().close();
  });

  it("makes nothing for the next user of a request that waited meanwhile", async () => {
    const [one, two] = await tabs();
    await type(two, "of-ann");
    let waits = (): void => {};
    const waiting = new Promise<void>((resolve) => (waits = resolve));
    await two.route("**/v1/leases?hold_offers=true", async (route) => {
      waits();
      await become(one, "carl");
      await route.continue();
    });
    await two.getByRole("button", { name: "Create lease" }).click();
    await waiting;
    await two.getByRole("heading", { name: "A different user is signed in" }).waitFor();
    expect(await leases("carl")).toEqual([]);
    await one.context().close();
  });

  it("as another user where a session has expired shows nothing of the former one", async () => {
    const page = await open(browser);
    await page.goto(service.url);
    await signIn(page, "ann");
    await page.getByText(ANN).waitFor();
    await type(page, "secret-of-ann");
    await page.context().clearCookies();
    // A request in the background can get the 401 first; then the link is gone.
    const over = page.getByText("Session expired.");
    const link = page.getByRole("link", { name: "Usage" });
    await Promise.race([over.waitFor(), link.click().catch(() => undefined)]);
    await over.waitFor();
    await signIn(page, "carl");
    await page.getByText(CARL).waitFor();
    expect(page.url()).not.toContain("usage");
    await visit(page, service, "#/leases/new");
    expect(await page.locator("input[name=lease-name]").inputValue()).toBe("");
    await page.context().close();
  });

  it("that fails says so, and is tried again", async () => {
    const page = await open(browser);
    await page.goto(service.url);
    await signIn(page, "ann");
    await page.getByText(ANN).waitFor();
    await page.route("**/v1/session", (route) => route.abort());
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "You are still signed in" }).waitFor();
    await page.screenshot({ path: join(out, "still-signed-in-light.png") });
    await page.unroute("**/v1/session");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.context().close();
  });

  it("is not needed for a calendar that has not changed to be sent once only", async () => {
    const page = await open(browser);
    const statuses: number[] = [];
    page.on("response", (answer) => {
      if (new URL(answer.url()).pathname === "/v1/calendar") statuses.push(answer.status());
    });
    await page.goto(service.url);
    await signIn(page, "ann");
    await page.locator("canvas").waitFor();
    await expect.poll(() => statuses.includes(304), { timeout: 90_000 }).toBe(true);
    expect(statuses[0]).toBe(200);
    await page.locator("[role=rowheader]").first().waitFor({ state: "attached" });
    expect(page.wrong).toEqual([]);
    await page.context().close();
  });
});
