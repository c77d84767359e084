// A lease that is being drafted: the form's fields, the request made from them, and a copy in the tab's storage. Pure
// except for the copy.

import { clock, type LeaseCreate, type Offer, period } from "./api/client";
import { HOUR, MINUTE } from "./calendar/geometry";
import { parse, rfc3339 } from "./calendar/zone";
import { keep, kept } from "./keep";
import { t } from "./texts";
import { onlyHosts, parseLength, WhereError, whereJson } from "./where";

/** Supported end actions. Only instances on whole hosts can be saved or migrated. */
export const endActions = (shared: boolean): string[] =>
  shared ? ["delete", "keep"] : ["delete", "keep", "snapshot", "migrate"];

export type LeaseType = "SCHEDULE" | "BEST-EFFORT" | "IMMEDIATE";

/** Fields of the form. `memory` and `disk` are in GiB, `start` and `end` in milliseconds since 1970 (UTC). */
export interface Draft {
  name: string;
  kind: "hosts" | "instances" | "flavor";
  min: number;
  max: number;
  amount: number;
  vcpus: number;
  memory: number;
  disk: number;
  flavor: string;
  where: string;
  /** Names of the only acceptable hosts. Empty: any host. */
  only: string[];
  type: LeaseType;
  start: number;
  end: number;
  timeout: string;
  /** Empty: the default of the hosts' pool. */
  endAction: string;
  waitlist: boolean;
}

export function emptyDraft(now: number): Draft {
  const start = Math.ceil((now + 5 * MINUTE) / (15 * MINUTE)) * 15 * MINUTE;
  return {
    name: "",
    kind: "hosts",
    min: 1,
    max: 1,
    amount: 1,
    vcpus: 4,
    memory: 8,
    disk: 20,
    flavor: "",
    where: "",
    only: [],
    type: "SCHEDULE",
    start,
    end: start + 2 * HOUR,
    timeout: "1h",
    endAction: "",
    waitlist: false,
  };
}

/** A start at most this long ago means now, because it takes time to fill in the form. */
const PRESENT = 15 * MINUTE;

/** The request for a draft, or the first invalid field and its error. */
export function requestOf(draft: Draft, now: number): { body: LeaseCreate } | { field: string; wrong: string } {
  if (draft.type !== "IMMEDIATE" && draft.end <= draft.start) return { field: "end", wrong: t.form.badOrder };
  if (draft.type === "SCHEDULE" && (draft.start < now - PRESENT || draft.end <= now))
    return { field: "start", wrong: t.form.past };
  let where: string;
  try {
    where = whereJson(draft.where);
  } catch (error) {
    if (error instanceof WhereError) return { field: "where", wrong: error.message };
    throw error;
  }
  const timeout = parseLength(draft.timeout);
  if (draft.type === "BEST-EFFORT" && timeout === null) return { field: "timeout", wrong: t.form.badLength };
  const reservation: NonNullable<LeaseCreate["reservations"]>[number] =
    draft.kind === "hosts"
      ? {
          resource_type: "physical:host",
          min: draft.min,
          max: Math.max(draft.min, draft.max),
          hypervisor_properties: onlyHosts(draft.only),
          resource_properties: where,
        }
      : draft.kind === "instances"
        ? {
            resource_type: "virtual:instance",
            amount: draft.amount,
            vcpus: draft.vcpus,
            memory_mb: Math.round(draft.memory * 1024),
            disk_gb: draft.disk,
            resource_properties: where,
          }
        : { resource_type: "flavor:instance", amount: draft.amount, flavor_id: draft.flavor };
  if (draft.kind === "flavor" && !draft.flavor) return { field: "flavor", wrong: t.form.incomplete };
  const minutes = Math.round((draft.end - draft.start) / MINUTE);
  const body = { name: draft.name, reservations: [reservation] } as LeaseCreate;
  if (endActions(draft.kind !== "hosts").includes(draft.endAction)) body.end_action = draft.endAction;
  if (draft.type === "SCHEDULE")
    Object.assign(body, {
      start_date: draft.start <= now ? "now" : rfc3339(draft.start),
      end_date: rfc3339(draft.end),
    });
  else Object.assign(body, { lease_type: draft.type, duration: `${minutes}m` });
  if (draft.type === "BEST-EFFORT") Object.assign(body, { timeout: `${timeout}m` });
  if (draft.waitlist && draft.type !== "IMMEDIATE") body.waitlist = true;
  return { body };
}

/** Applies an offer to a draft. A new timeout counts from `now`. */
export function withOffer(draft: Draft, offer: Pick<Offer, "lease" | "kind">, now: number): Draft {
  const { start, end } = period(offer.lease);
  if (offer.kind === "longer_timeout" && offer.lease.timeout_date)
    return { ...draft, timeout: `${Math.ceil((parse(offer.lease.timeout_date) - now) / MINUTE)}m` };
  const reservation = offer.lease.reservations[0] as Record<string, unknown> | undefined;
  const next: Draft = { ...draft, start, end };
  if (reservation?.resource_type === "physical:host") {
    next.min = Number(reservation.min ?? draft.min);
    next.max = Number(reservation.max ?? draft.max);
  } else if (reservation?.amount !== undefined) {
    next.amount = Number(reservation.amount);
  }
  return next;
}

/** The draft in the tab's storage. Null if there is none or it is invalid. */
export function keptDraft(): Draft | null {
  const text = kept("sessionStorage", "draft");
  try {
    return text ? { ...emptyDraft(clock.now()), ...(JSON.parse(text) as Partial<Draft>) } : null;
  } catch {
    return null;
  }
}

export const keepDraft = (draft: Draft | null): void =>
  keep("sessionStorage", "draft", draft && JSON.stringify(draft));

/** The draft with the name of the stored one. */
export const keptName = (draft: Draft): Draft => ({ ...draft, name: keptDraft()?.name ?? "" });
