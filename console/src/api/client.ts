// Requests to the service. The session is an HttpOnly cookie. Requests carry a custom header, which other sites cannot
// send.

import { parse } from "../calendar/zone";
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Lease = Schemas["Lease"];
export type Reservation = Schemas["Reservation"];
export type Offer = Schemas["Offer"];
export type Host = Schemas["Host"];
export type Instance = Schemas["Instance"];
export type Availability = Schemas["Availability"];
export type LeaseCreate = Schemas["LeaseCreate"];
export type LeaseChange = Schemas["LeaseChange"];
export type Bodies = Schemas;

/** A failed request. The status is 0 if the service did not answer, and -1 for any other exception. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | null = null,
    readonly offers: Offer[] = [],
    readonly retryAfter: number | null = null,
    /** Supported ways to sign in: `password`, `token`. */
    readonly logins: string[] = [],
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** The service's clock. It can differ from this machine's clock, and runs faster in a demo. */
class ServiceClock {
  private heard: { service: number; here: number; rate: number } | null = null;

  /** Sets the clock to a time just reported by the service. The rate is estimated from reports at least 2 s apart. */
  hear(service: number): void {
    if (Number.isNaN(service)) return;
    const here = Date.now();
    const last = this.heard;
    let rate = last?.rate ?? 1;
    if (last && here - last.here >= 2000) {
      const seen = (service - last.service) / (here - last.here);
      rate = seen > 0.5 && seen < 4000 ? (Math.abs(seen - 1) < 0.7 ? 1 : seen) : 1;
    } else if (last) {
      return;
    }
    this.heard = { service, here, rate };
  }

  now(): number {
    const last = this.heard;
    return last ? last.service + (Date.now() - last.here) * last.rate : Date.now();
  }
}

export const clock = new ServiceClock();

/** Called when a request is rejected because there is no session or it has expired. */
let signedOut: (logins: string[]) => void = () => {};
export function onSignedOut(handler: (logins: string[]) => void): void {
  signedOut = handler;
}

/** User and project of this page. The service rejects its requests once another user is signed in. */
let actsFor: Pick<Session, "user" | "project_id"> | null = null;
export function actFor(session: Session): void {
  actsFor = session;
}

/** Called when the service reports that another user is signed in. */
let userChanged: () => void = () => {};
export function onUserChanged(handler: () => void): void {
  userChanged = handler;
}

/** A response body and its ETag. Browsers don't store responses of the API, so the console revalidates them itself. */
export interface Tagged {
  tag: string | null;
  body: unknown;
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface Options {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Treat 401 like any other error. By default, it ends the session. */
  anonymous?: boolean;
  /** Don't name the user of this page, so the service accepts the request for any user. */
  anyone?: boolean;
  /** An earlier response, returned again if it hasn't changed. */
  known?: Tagged | undefined;
}

export function path(...parts: string[]): string {
  return `/v1/${parts.map(encodeURIComponent).join("/")}`;
}

export const request = async <T>(method: string, url: string, options: Options = {}): Promise<T> =>
  (await answer(method, url, options)).body as T;

export async function answer(method: string, url: string, options: Options = {}): Promise<Tagged> {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  // With X-Allot-Console, the service accepts changes, and a 401 doesn't open the browser's own sign-in dialog.
  const headers: Record<string, string> = { Accept: "application/json", "X-Allot-Console": "1", ...options.headers };
  if (actsFor && !options.anyone) {
    headers["X-Allot-User"] = encodeURIComponent(actsFor.user);
    headers["X-Allot-Project"] = encodeURIComponent(actsFor.project_id);
  }
  if (options.known?.tag) headers["If-None-Match"] = options.known.tag;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(search.size > 0 ? `${url}?${search}` : url, {
      method,
      headers,
      credentials: "same-origin",
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
      ...(options.signal && { signal: options.signal }),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "");
  }
  clock.hear(Date.parse(response.headers.get("Date") ?? ""));
  if (response.status === 304 && options.known) return options.known;
  const text = await response.text().catch(() => "");
  let body: unknown = null;
  try {
    body = text ? JSON.parse(text) : null;
  } catch {
    body = null;
  }
  if (response.ok) return { tag: response.headers.get("ETag"), body };
  const error = failure(response, body);
  if (response.status === 401 && !options.anonymous) signedOut(error.logins);
  if (response.status === 412) userChanged();
  throw error;
}

function failure(response: Response, body: unknown): ApiError {
  const said = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  // The built-in Keystone has its own format for errors.
  const inner = (typeof said.error === "object" && said.error !== null ? said.error : {}) as Record<string, unknown>;
  const message = said.error_message ?? inner.message ?? response.statusText;
  const retry = Number(response.headers.get("Retry-After") ?? Number.NaN);
  return new ApiError(
    response.status,
    String(message),
    typeof said.hint === "string" ? said.hint : null,
    Array.isArray(said.offers) ? (said.offers as Offer[]) : [],
    Number.isNaN(retry) ? null : retry,
    Array.isArray(said.login) ? said.login.map(String) : [],
  );
}

export const get = <T>(url: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
  request<T>("GET", url, { query, ...(signal && { signal }) });

/** The signed-in user. `rules` says for each policy rule, such as `blazar:leases:post`, whether it allows the user. */
export interface Session {
  user: string;
  user_name: string | null;
  project_id: string;
  project_name: string | null;
  roles: string[];
  authentication: string;
  rules: Record<string, boolean>;
}

export const session = {
  read: (): Promise<{ session: Session }> =>
    request("GET", "/v1/session", { anonymous: true, anyone: true }),
  start: (body: unknown): Promise<{ session: Session }> =>
    request("POST", "/v1/session", { body, anonymous: true, anyone: true }),
  end: (): Promise<void> => request("DELETE", "/v1/session", { anonymous: true }),
};

/** Dry run: returns the lease that would be created. Throws a refusal as an `ApiError`. */
export async function tryLease(body: LeaseCreate, signal?: AbortSignal): Promise<Lease> {
  const query = { dry_run: true };
  return (await request<{ lease: Lease }>("POST", "/v1/leases", { query, body, ...(signal && { signal }) })).lease;
}

/** Repeating the request with the same idempotency key doesn't create a second lease. */
export async function makeLease(
  body: LeaseCreate,
  key: string,
): Promise<Bodies["LeaseMadeBody"] | Bodies["WaitlistEntryBody"]> {
  return request("POST", "/v1/leases", { query: { hold_offers: true }, body, headers: { "Idempotency-Key": key } });
}

/** 128 random bits in hexadecimal. */
export function freshKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function changeLease(id: string, body: LeaseChange, dry: boolean, signal?: AbortSignal): Promise<Lease> {
  const query = dry ? { dry_run: true } : { hold_offers: true };
  const answer = await request<{ lease: Lease }>("PUT", path("leases", id), { query, body, ...(signal && { signal }) });
  return answer.lease;
}

export const acceptOffer = async (id: string): Promise<Lease> =>
  (await request<{ lease: Lease }>("POST", `${path("offers", id)}/accept`)).lease;

/** Loads up to `most` entries of a list that is paged by `marker`. `more` says whether the list continues. */
export async function all<T extends { id: string }>(
  url: string,
  name: string,
  query: Query,
  most: number,
): Promise<{ items: T[]; more: boolean }> {
  const items: T[] = [];
  const page = 1000;
  let marker: string | undefined;
  while (items.length < most) {
    const body = await get<Record<string, T[]>>(url, { ...query, limit: page, marker });
    const found = body[name] ?? [];
    items.push(...found);
    marker = found[found.length - 1]?.id;
    if (found.length < page || !marker) return { items, more: false };
  }
  return { items: items.slice(0, most), more: true };
}

/** Start and end in milliseconds since 1970 (UTC). */
export function period(lease: Pick<Lease, "start_date" | "end_date">): { start: number; end: number } {
  return { start: parse(lease.start_date), end: parse(lease.end_date) };
}
