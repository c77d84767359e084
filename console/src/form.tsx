// The form for a new lease. A dry run checks the draft as it changes, and a refusal comes with alternatives.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  acceptOffer,
  ApiError,
  type Availability,
  type Bodies,
  clock,
  freshKey,
  get,
  type Lease,
  makeLease,
  type Offer,
  period,
  tryLease,
} from "./api/client";
import { MINUTE } from "./calendar/geometry";
import { clock as clockText, forInput, fromInput, length, parse, rfc3339, stamp } from "./calendar/zone";
import { type Draft, endActions, requestOf, withOffer } from "./draft";
import { gib, Refusal, shorten, whatOfLease } from "./parts";
import { changes, useContextOf, useLoaded, useSettled } from "./state";
import { t } from "./texts";
import { onlyHosts, parseLength, whereJson } from "./where";

/** Result of checking a draft, in the form (`wrong`) or by a dry run. */
export type Answer =
  | { kind: "none" }
  | { kind: "asking" }
  | { kind: "wrong"; field: string; text: string }
  | { kind: "can"; lease: Lease }
  | { kind: "cannot"; error: ApiError };

/**
 * Checks a draft by a dry run whenever it changes. The answer is always for the current draft. Only while a draft is
 * dragged (`moving`), the last answer stays until the next one arrives.
 */
export function useAnswer(draft: Draft | null, moving = false): Answer {
  const [answer, set] = useState<Answer>({ kind: "none" });
  const settled = useSettled(draft, moving ? 150 : 300, moving);
  useEffect(() => {
    if (!settled) {
      set({ kind: "none" });
      return;
    }
    const request = requestOf(settled, clock.now());
    if ("wrong" in request) {
      set({ kind: "wrong", field: request.field, text: request.wrong });
      return;
    }
    const controller = new AbortController();
    if (!moving) set({ kind: "asking" });
    const ask = (): void => {
      // The API requires a name, and a dry run accepts any.
      tryLease({ ...request.body, name: request.body.name || "draft", waitlist: false }, controller.signal)
        .then((lease) => set({ kind: "can", lease }))
        .catch((error: unknown) => {
          if (!controller.signal.aborted && error instanceof ApiError) set({ kind: "cannot", error });
        });
    };
    ask();
    const unsubscribe = changes.subscribe(ask);
    return () => {
      unsubscribe();
      controller.abort();
    };
  }, [settled]);
  return draft && settled !== draft && !moving ? { kind: "asking" } : answer;
}

export interface FormProps {
  draft: Draft;
  answer: Answer;
  change: (draft: Draft) => void;
  made: (lease: Lease) => void;
  compact?: boolean;
}

export function LeaseForm({ draft, answer, change, made, compact = false }: FormProps): JSX.Element {
  const { zone } = useContextOf();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [waits, setWaits] = useState<number | null>(null);
  const [lengthText, setLengthText] = useState(() => shortLength(draft.end - draft.start));
  const shownLength = useRef(draft.end - draft.start);
  const flavors = useLoaded<Bodies["FlavorsBody"]>("flavors", (signal) => get("/v1/flavors", {}, signal));
  const properties = useLoaded<Bodies["PropertiesBody"]>("properties", (signal) =>
    get("/v1/os-hosts/properties", {}, signal),
  );
  // The key stays the same until the draft changes, so a retry without an answer doesn't create a second lease.
  const key = useRef(freshKey());
  const set = (part: Partial<Draft>): void => {
    setFailure(null);
    setWaits(null);
    key.current = freshKey();
    change({ ...draft, ...part });
  };
  useEffect(() => {
    if (draft.end - draft.start !== shownLength.current) {
      shownLength.current = draft.end - draft.start;
      setLengthText(shortLength(shownLength.current));
    }
  }, [draft.start, draft.end]);

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const request = requestOf(draft, clock.now());
    if (busy || "wrong" in request) return;
    setBusy(true);
    setFailure(null);
    try {
      const answered = await makeLease(request.body, key.current);
      if ("lease" in answered) made(answered.lease);
      else setWaits(answered.waitlist_entry.place);
      changes.tell();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error);
      if (error.status >= 400 && error.status < 500) key.current = freshKey();
    } finally {
      setBusy(false);
    }
  };
  const accept = async (offer: Offer): Promise<void> => {
    if (!offer.id) return;
    setBusy(true);
    try {
      made(await acceptOffer(offer.id));
      changes.tell();
    } catch (error) {
      if (error instanceof ApiError) {
        setFailure(error.status === 404 ? new ApiError(404, t.form.offerGone) : error);
      } else throw error;
    } finally {
      setBusy(false);
    }
  };

  const number = (
    label: string,
    name: keyof Draft & ("min" | "max" | "amount" | "vcpus" | "memory" | "disk"),
    least = 1,
  ): JSX.Element => (
    <label class="field narrow">
      <span>{label}</span>
      <input
        type="number"
        min={least}
        max={1_000_000}
        required
        value={draft[name]}
        onInput={(event) => {
          const value = event.currentTarget.valueAsNumber;
          if (Number.isNaN(value)) return;
          const part: Partial<Draft> = { [name]: value };
          if (name === "min" && value > draft.max) part.max = value;
          if (name === "max" && value < draft.min) part.min = value;
          set(part);
        }}
      />
    </label>
  );
  const wrong = answer.kind === "wrong" ? answer : null;
  const invalid = (field: string) =>
    wrong?.field === field ? { "aria-invalid": true, "aria-describedby": `wrong-${field}` } : {};
  const message = (field: string): JSX.Element | null =>
    wrong?.field === field ? (
      <span class="wrong" id={`wrong-${field}`}>
        {wrong.text}
      </span>
    ) : null;
  const names = properties.data?.resource_properties.map((property) => property.property).join(", ") ?? "";

  return (
    <form
      autocomplete="off"
      class={compact ? "lease-form compact" : "lease-form"}
      onSubmit={(event) => void submit(event)}
    >
      <div class="fields">
        <label class="field">
          <span>{t.form.name}</span>
          <input
            required
            maxLength={255}
            value={draft.name}
            name="lease-name"
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
        </label>

        <fieldset>
          <legend>{t.form.what}</legend>
          <div class="choices">
            {(["hosts", "instances", "flavor"] as const)
              .filter((kind) => kind !== "flavor" || (flavors.data?.flavors.length ?? 0) > 0)
              .map((kind) => (
                <label key={kind}>
                  <input
                    type="radio"
                    name="kind"
                    checked={draft.kind === kind}
                    onChange={() => set({ kind, flavor: draft.flavor || (flavors.data?.flavors[0]?.id ?? "") })}
                  />
                  {t.form.kinds[kind]}
                </label>
              ))}
          </div>
          <div class="row">
            {draft.kind === "hosts" && (
              <>
                {number(t.form.min, "min")}
                {number(t.form.max, "max")}
              </>
            )}
            {draft.kind !== "hosts" && number(t.form.amount, "amount")}
            {draft.kind === "instances" && (
              <>
                {number(t.form.vcpus, "vcpus")}
                {number(t.form.memory, "memory")}
                {number(t.form.disk, "disk", 0)}
              </>
            )}
            {draft.kind === "flavor" && (
              <label class="field">
                <span>{t.form.flavor}</span>
                <select value={draft.flavor} onChange={(event) => set({ flavor: event.currentTarget.value })}>
                  {flavors.data?.flavors.map((flavor) => (
                    <option key={flavor.id} value={flavor.id}>
                      {shorten(flavor.name, 40)} · {flavor.vcpus} vCPU, {gib(flavor.ram)}
                    </option>
                  ))}
                </select>
              </label>
            )}
          </div>
          {draft.kind === "hosts" && draft.only.length > 0 && (
            <p class="only">
              {t.form.only}: <strong>{shorten(draft.only.join(", "), 160)}</strong>{" "}
              <button type="button" class="quiet" onClick={() => set({ only: [] })}>
                {t.form.onlyAny}
              </button>
            </p>
          )}
          {draft.kind !== "flavor" && (
            <label class="field">
              <span>{t.form.where}</span>
              <input
                value={draft.where}
                maxLength={4000}
                spellcheck={false}
                name="where"
                {...invalid("where")}
                onInput={(event) => set({ where: event.currentTarget.value })}
              />
              {message("where")}
              <small>{t.form.whereHelp(names)}</small>
            </label>
          )}
        </fieldset>

        <fieldset>
          <legend>{t.form.when}</legend>
          <div class="choices">
            {(["SCHEDULE", "BEST-EFFORT", "IMMEDIATE"] as const).map((type) => (
              <label key={type}>
                <input type="radio" name="type" checked={draft.type === type} onChange={() => set({ type })} />
                {t.form.types[type]}
              </label>
            ))}
          </div>
          <div class="row">
            {draft.type === "SCHEDULE" && (
              <>
                <label class="field">
                  <span>{t.form.start}</span>
                  <input
                    type="datetime-local"
                    required
                    value={forInput(draft.start, zone)}
                    name="start"
                    {...invalid("start")}
                    onInput={(event) => {
                      const start = fromInput(event.currentTarget.value, zone);
                      if (start !== null) set({ start, end: start + (draft.end - draft.start) });
                    }}
                  />
                  {message("start")}
                </label>
                <label class="field">
                  <span>{t.form.end}</span>
                  <input
                    type="datetime-local"
                    required
                    value={forInput(draft.end, zone)}
                    name="end"
                    {...invalid("end")}
                    onInput={(event) => {
                      const end = fromInput(event.currentTarget.value, zone);
                      if (end !== null) set({ end });
                    }}
                  />
                  {message("end")}
                </label>
              </>
            )}
            <label class="field narrow">
              <span>{t.form.lasts}</span>
              <input
                value={lengthText}
                required
                name="length"
                aria-invalid={parseLength(lengthText) === null && draft.end > draft.start}
                onInput={(event) => {
                  setLengthText(event.currentTarget.value);
                  const minutes = parseLength(event.currentTarget.value);
                  if (minutes === null) return;
                  shownLength.current = minutes * MINUTE;
                  set({ end: draft.start + minutes * MINUTE });
                }}
              />
            </label>
            {draft.type === "BEST-EFFORT" && (
              <label class="field narrow">
                <span>{t.form.timeout}</span>
                <input
                  value={draft.timeout}
                  required
                  {...invalid("timeout")}
                  onInput={(event) => set({ timeout: event.currentTarget.value })}
                />
                {message("timeout")}
              </label>
            )}
          </div>
          {draft.type === "SCHEDULE" && <small>{t.form.zone(zone)}</small>}
          <label class="field narrow">
            <span>{t.form.endAction}</span>
            <select value={draft.endAction} onChange={(event) => set({ endAction: event.currentTarget.value })}>
              <option value="">{t.form.endActionUsual}</option>
              {endActions(draft.kind !== "hosts").map((action) => (
                <option key={action} value={action}>
                  {t.lease.endActions[action]}
                </option>
              ))}
            </select>
          </label>
          {draft.type !== "IMMEDIATE" && (
            <label class="check">
              <input
                type="checkbox"
                checked={draft.waitlist}
                onChange={(event) => set({ waitlist: event.currentTarget.checked })}
              />
              {t.form.waitlist}
            </label>
          )}
        </fieldset>
      </div>

      <div class="verdict">
        <h3>{t.form.matching}</h3>
        <Matching draft={draft} accepted={answer.kind === "can"} />
        {failure ? (
          <Offers
            error={failure}
            busy={busy}
            use={(offer) => {
              set(withOffer(draft, offer, clock.now()));
            }}
            accept={(offer) => void accept(offer)}
          />
        ) : (
          <Verdict draft={draft} answer={answer} busy={busy} use={(offer) => set(withOffer(draft, offer, clock.now()))} />
        )}
        {waits !== null && (
          <p class="ok" role="status">
            {t.form.waiting(waits)}
          </p>
        )}
        <button type="submit" class="primary" disabled={busy || answer.kind === "wrong"}>
          {draft.waitlist && answer.kind === "cannot" ? t.form.submitWait : t.form.submit}
        </button>
      </div>
    </form>
  );
}

function shortLength(milliseconds: number): string {
  const minutes = Math.max(0, Math.round(milliseconds / MINUTE));
  const parts = [
    [Math.floor(minutes / 1440), "d"],
    [Math.floor((minutes % 1440) / 60), "h"],
    [minutes % 60, "m"],
  ] as const;
  return (
    parts
      .filter(([count]) => count > 0)
      .map(([count, unit]) => `${count}${unit}`)
      .join(" ") || "0m"
  );
}

/** Number of matching hosts, and the smallest number of free ones at any moment of the period. */
function Matching({ draft, accepted }: { draft: Draft; accepted: boolean }): JSX.Element | null {
  const query = useMemo(() => {
    if (draft.type !== "SCHEDULE" || draft.end <= draft.start) return null;
    const of: Record<string, string> = { start: rfc3339(Math.max(draft.start, clock.now())), end: rfc3339(draft.end) };
    try {
      if (draft.kind === "flavor") of.flavor_id = draft.flavor;
      else of.resource_properties = whereJson(draft.where);
    } catch {
      return null;
    }
    if (draft.kind === "hosts") of.hypervisor_properties = onlyHosts(draft.only);
    if (draft.kind === "instances")
      Object.assign(of, { vcpus: draft.vcpus, memory_mb: Math.round(draft.memory * 1024), disk_gb: draft.disk });
    return draft.kind === "flavor" && !draft.flavor ? null : of;
  }, [draft]);
  const settled = useSettled(query, 300);
  const found = useLoaded<{ availability: Availability }>(settled && `matching ${JSON.stringify(settled)}`, (signal) =>
    get("/v1/availability", settled ?? {}, signal),
  );
  const availability = query && found.data?.availability;
  if (!availability) return null;
  const free = Math.min(availability.total, ...availability.steps.map((step) => step.free));
  const text =
    draft.kind === "hosts" ? t.form.matches(availability.total, free) : t.form.matchesRoom(availability.total, free);
  const wanted = draft.kind === "hosts" ? draft.min : draft.amount;
  return (
    <p class="matching">
      {text}
      {accepted && free < wanted && ` ${t.form.makesRoom}`}
    </p>
  );
}

function Verdict(props: { draft: Draft; answer: Answer; busy: boolean; use: (offer: Offer) => void }): JSX.Element {
  const { zone } = useContextOf();
  const { answer } = props;
  switch (answer.kind) {
    case "none":
    case "wrong":
      return <p role="status">{answer.kind === "wrong" ? answer.text : t.form.incomplete}</p>;
    case "asking":
      return <p role="status">{t.form.asking}</p>;
    case "can": {
      const { start, end } = period(answer.lease);
      const moved = props.draft.type !== "SCHEDULE";
      return (
        <>
          <p class="ok" role="status">
            {moved ? t.form.acceptedFrom(stamp(start, zone), stamp(end, zone)) : t.form.accepted}
          </p>
          {answer.lease.cost && (
            <p>{t.form.willCost(Number(answer.lease.cost.amount).toFixed(2), answer.lease.cost.currency)}</p>
          )}
        </>
      );
    }
    case "cannot":
      return <Offers error={answer.error} busy={props.busy} use={props.use} accept={props.use} />;
  }
}

/** A refusal with its alternatives. */
export function Offers(props: {
  error: ApiError;
  busy: boolean;
  use: (offer: Offer) => void;
  accept: (offer: Offer) => void;
}): JSX.Element {
  const { zone } = useContextOf();
  return (
    <>
      <Refusal error={props.error} />
      {props.error.offers.length > 0 && (
        <div class="offers">
          <h4>{t.form.instead}</h4>
          <ul>
            {props.error.offers.map((offer, at) => {
              const { start, end } = period(offer.lease);
              return (
                <li key={offer.id ?? at}>
                  <div>
                    <strong>{t.form.offers[offer.kind] ?? offer.kind}</strong>: {whatOfLease(offer.lease)}
                    <br />
                    {stamp(start, zone)} – {stamp(end, zone)} ({length(end - start)})
                    {offer.expires_at && (
                      <>
                        <br />
                        <small>{t.form.heldUntil(clockText(parse(offer.expires_at), zone))}</small>
                      </>
                    )}
                  </div>
                  <button
                    type="button"
                    disabled={props.busy}
                    onClick={() => (offer.id ? props.accept(offer) : props.use(offer))}
                  >
                    {offer.id ? t.form.accept : t.form.take}
                  </button>
                </li>
              );
            })}
          </ul>
        </div>
      )}
    </>
  );
}
