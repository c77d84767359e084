// Fixtures for tests of the console: the service as a process, and a browser.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";

const program = process.env.ALLOT ?? "allot";
/** Directory for screenshots. */
export const out = process.env.ALLOT_CONSOLE_OUT ?? join(tmpdir(), "allot-console");
mkdirSync(out, { recursive: true });

export const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Waits until `holds` returns true. `what` is for the error after `seconds`. */
export async function until(what: string, holds: () => Promise<boolean>, seconds = 60): Promise<void> {
  const end = Date.now() + seconds * 1000;
  while (!(await holds().catch(() => false))) {
    if (Date.now() > end) throw new Error(`in ${seconds} seconds it did not come about that ${what}`);
    await pause(100);
  }
}

/** A free port, chosen by the system. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

export class Service {
  readonly directory = mkdtempSync(join(tmpdir(), "allot-console-"));
  /** Chosen at the first start and kept for later ones. 0 until then. */
  port = 0;
  private child: ChildProcess | null = null;
  private said = "";

  constructor(private readonly words: (service: Service) => string[]) {}

  /** The demo's fleet, projects and leases. `speed` is the rate of its clock. */
  static demo(speed = 1): Service {
    return new Service((service) => [
      "demo",
      "--speed",
      String(speed),
      "--listen",
      `127.0.0.1:${service.port}`,
      "--directory",
      join(service.directory, "data"),
    ]);
  }

  /** A service with sign-in: `root` is administrator of `ops`, `ann` member of `physics`, `carl` of `chemistry`. */
  static async guarded(): Promise<Service> {
    const hash = await hashed("correct horse battery");
    const users = [
      ["root", "ops", "admin"],
      ["ann", "physics", "member"],
      ["carl", "chemistry", "member"],
    ] as const;
    return new Service((service) => {
      const file = join(service.directory, "users.toml");
      writeFileSync(
        file,
        users
          .map(
            ([name, project, role]) =>
              `[[users]]\nname = "${name}"\npassword_hash = "${hash}"\nprojects = { ${project} = ["${role}"] }\ndefault_project = "${project}"\n`,
          )
          .join("\n"),
        { mode: 0o600 },
      );
      return [
        "serve",
        "--listen",
        `127.0.0.1:${service.port}`,
        "--database",
        `sqlite://${join(service.directory, "allot.db")}`,
        "--auth",
        `local-keystone:${file}`,
        "--limits-requests-per-second",
        "0",
        "--simulated-timing",
        "immediate",
      ];
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<this> {
    this.port ||= await freePort();
    const child = spawn(program, this.words(this), { stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    const keep = (chunk: Buffer): void => {
      this.said = (this.said + chunk.toString()).slice(-4000);
    };
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    const over = (): boolean => child.exitCode !== null || child.signalCode !== null;
    const answers = async (): Promise<boolean> => (await fetch(`${this.url}/readyz`)).ok;
    await until("the service answers", async () => over() || (await answers()), 120).catch((error: Error) => {
      throw new Error(`${error.message}; it said: ${this.said}`);
    });
    if (over()) throw new Error(`the service ended with ${child.exitCode ?? child.signalCode}; it said: ${this.said}`);
    return this;
  }

  /** Ends the service like a crash. */
  async kill(): Promise<void> {
    const child = this.child;
    this.child = null;
    if (!child || child.exitCode !== null) return;
    const over = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await over;
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** A request as an API client sends it, without the console's session. */
  async ask<T>(method: string, path: string, body?: unknown, token?: string): Promise<T> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: { "Content-Type": "application/json", ...(token && { "X-Auth-Token": token }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : null) as T;
  }

  async token(user: string): Promise<string> {
    const answer = await fetch(`${this.url}/identity/v3/auth/tokens`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        auth: {
          identity: {
            methods: ["password"],
            password: { user: { name: user, password: "correct horse battery", domain: { id: "default" } } },
          },
        },
      }),
    });
    const token = answer.headers.get("X-Subject-Token");
    if (!token) throw new Error(`no token for ${user}: ${answer.status} ${await answer.text()}`);
    return token;
  }
}

function hashed(password: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["hash", "password"], { stdio: ["pipe", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.once("exit", (code) => (code === 0 ? resolve(text.trim()) : reject(new Error(`allot hash: ${code}`))));
    child.stdin.end(`${password}\n`);
  });
}

export function browser(): Promise<Browser> {
  // Continuous integration runs as root, and Chromium's sandbox doesn't support root.
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
}

/** A page that records exceptions and violations of the content security policy in `wrong`. */
export async function open(
  browser: Browser,
  options: { width?: number; height?: number; dark?: boolean; zone?: string } = {},
): Promise<Page & { wrong: string[] }> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
    colorScheme: options.dark ? "dark" : "light",
    timezoneId: options.zone ?? "Europe/Paris",
    reducedMotion: "reduce",
  });
  const page = Object.assign(await context.newPage(), { wrong: [] as string[] });
  page.setDefaultTimeout(40_000);
  page.on("pageerror", (error) => page.wrong.push(String(error.stack)));
  page.on("console", (message) => {
    // The browser also logs error responses, which other tests cover.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      page.wrong.push(message.text());
  });
  return page;
}

/** Starts the demo and opens a page before all tests of a group, and ends both after them. */
export function demonstration(
  browser: () => Browser,
  ready: (service: Service, page: Page & { wrong: string[] }) => void,
): void {
  let [service, page]: [Service | null, Page | null] = [null, null];
  beforeAll(async () => {
    service = await Service.demo().start();
    const opened = await open(browser());
    page = opened;
    ready(service, opened);
  });
  afterAll(async () => {
    await page?.context().close();
    await service?.end();
  });
}
