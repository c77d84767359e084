// A lease, as a page and as a panel next to the calendar.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  acceptOffer,
  ApiError,
  type Bodies,
  changeLease,
  clock,
  get,
  type Instance,
  type Lease,
  type LeaseChange,
  type Offer,
  path,
  period,
  request,
} from "./api/client";
import type { Edge } from "./calendar/timeline";
import { forInput, fromInput, length, parse, rfc3339 } from "./calendar/zone";
import { endActions } from "./draft";
import { Offers } from "./form";
import {
  Confirm,
  CopyId,
  Failure,
  gib,
  lasts,
  Name,
  Project,
  Stale,
  Status,
  Time,
  User,
  Waiting,
  whatOf,
  whereOf,
} from "./parts";
import { go, href } from "./route";
import { changes, may, useContextOf, useLoaded, useNow, useSettled } from "./state";
import { t } from "./texts";

const useLease = (id: string) =>
  useLoaded<{ lease: Lease }>(`lease-${id}`, (signal) => get(path("leases", id), { detail: "yes" }, signal));

/** All instances that the caller can see. Users of the hook filter them by lease. */
const useGuests = (id: string) =>
  useLoaded<{ instances: Instance[] }>(`guests-${id}`, (signal) => get("/v1/instances", {}, signal));

export function LeaseView({ id }: { id: string }): JSX.Element {
  const loaded = useLease(id);
  if (loaded.loading)
    return (
      <div class="page">
        <Waiting />
      </div>
    );
  const lease = loaded.data?.lease;
  if (!lease) {
    return (
      <div class="page">
        <h1>{t.lease.missing}</h1>
        {loaded.error && <Failure error={loaded.error} retry={loaded.reload} />}
        <p>
          <a href={href(["leases"])}>{t.leases.title}</a>
        </p>
      </div>
    );
  }
  return (
    <div class="page">
      <header class="page-head">
        <h1>
          <Name text={lease.name} /> <Status status={lease.status} degraded={lease.degraded} />
        </h1>
        <CopyId id={lease.id} />
      </header>
      <Stale error={loaded.error} />
      <div class="columns">
        <section>
          <Terms lease={lease} />
          <Reservations lease={lease} />
          <Plan lease={lease} />
        </section>
        <section>
          <Actions lease={lease} edge={null} />
          <Guests lease={lease} />
          <Usage lease={lease} />
        </section>
      </div>
      <Events lease={lease} />
      <History id={lease.id} />
    </div>
  );
}

export function LeasePanel({ id, edge, close }: { id: string; edge: Edge | null; close: () => void }): JSX.Element {
  const loaded = useLease(id);
  const lease = loaded.data?.lease;
  useEffect(() => {
    const escape = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) close();
    };
    addEventListener("keydown", escape);
    return () => removeEventListener("keydown", escape);
  }, [close]);
  return (
    <>
      <header>
        <h2>{lease ? <Name text={lease.name} /> : t.nav.leases}</h2>
        <button type="button" class="quiet" onClick={close}>
          {t.close}
        </button>
      </header>
      {loaded.loading && <Waiting />}
      {!lease && loaded.error && <Failure error={loaded.error} retry={loaded.reload} />}
      {lease && (
        <>
          <p>
            <Status status={lease.status} degraded={lease.degraded} />{" "}
            <a href={href(["leases", lease.id])}>{t.openPage}</a>
          </p>
          <Stale error={loaded.error} />
          <Terms lease={lease} />
          <Reservations lease={lease} />
          <Actions key={`${lease.id} ${edge ? `${edge.side} ${edge.time}` : ""}`} lease={lease} edge={edge} />
        </>
      )}
    </>
  );
}

function Terms({ lease }: { lease: Lease }): JSX.Element {
  const now = useNow(() => clock.now(), 5000);
  const { start, end } = period(lease);
  return (
    <dl class="terms">
      {lease.status_reason && (
        <>
          <dt>{t.lease.reason}</dt>
          <dd class="attention">{lease.status_reason}</dd>
        </>
      )}
      <dt>{t.lease.start}</dt>
      <dd>
        <Time at={start} now={now} />{" "}
        <small>
          <Time at={start} now={now} away />
        </small>
      </dd>
      <dt>{t.lease.end}</dt>
      <dd>
        <Time at={end} now={now} />{" "}
        <small>
          <Time at={end} now={now} away />
        </small>
      </dd>
      <dt>{t.lease.lasts}</dt>
      <dd>{lasts(lease)}</dd>
      <dt>{t.lease.project}</dt>
      <dd>
        <Project id={lease.project_id} />
      </dd>
      <dt>{t.lease.user}</dt>
      <dd>
        <User id={lease.user_id} />
      </dd>
      <dt>{t.lease.type}</dt>
      <dd>{t.lease.types[lease.lease_type] ?? lease.lease_type}</dd>
      <dt>{t.lease.endAction}</dt>
      <dd>{endActionName(lease.end_action)}</dd>
    </dl>
  );
}

function Reservations({ lease }: { lease: Lease }): JSX.Element {
  return (
    <>
      {lease.reservations.map((reservation) => {
        const where = whereOf(reservation);
        const hosts = reservation.hosts ?? [];
        const addresses = reservation.floating_ips ?? [];
        return (
          <section key={reservation.id} class="reservation">
            <h3>
              {t.lease.reserved}: {whatOf(reservation)}
            </h3>
            {where && (
              <p class="where">
                {t.lease.where} <code>{where.slice(0, 500)}</code>
              </p>
            )}
            {hosts.length > 0 ? (
              <ul class="chips" aria-label={t.lease.hosts}>
                {hosts.slice(0, 100).map((host) => (
                  <li key={host}>{host}</li>
                ))}
                {hosts.length > 100 && <li>+ {hosts.length - 100}</li>}
              </ul>
            ) : (
              addresses.length === 0 && lease.status === "PENDING" && <p class="note">{t.lease.hostsLater}</p>
            )}
            {addresses.length > 0 && (
              <ul class="chips" aria-label={t.lease.addresses}>
                {addresses.map((address) => (
                  <li key={address}>{address}</li>
                ))}
              </ul>
            )}
          </section>
        );
      })}
    </>
  );
}

function Guests({ lease }: { lease: Lease }): JSX.Element {
  const loaded = useGuests(lease.id);
  const guests = loaded.data?.instances.filter((instance) => instance.lease_id === lease.id) ?? [];
  return (
    <section>
      <h2>{t.lease.guests}</h2>
      {loaded.loading ? (
        <Waiting />
      ) : guests.length === 0 ? (
        <p class="note">{t.lease.noGuests}</p>
      ) : (
        <ul class="plain">
          {guests.slice(0, 100).map((guest) => (
            <li key={guest.id}>
              <Name text={guest.name} /> <Status status={guest.status} /> {guest.host}{" "}
              <small>
                {guest.vcpus} vCPU, {gib(guest.memory_mb)}
              </small>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Plan({ lease }: { lease: Lease }): JSX.Element | null {
  const planned = Boolean(lease.plan);
  const loaded = useLoaded<Bodies["PlanBody"]>(planned ? `plan-${lease.id}` : null, (signal) =>
    get(path("leases", lease.id, "plan"), {}, signal),
  );
  const plan = loaded.data?.plan;
  if (!plan?.summary) return null;
  const total = plan.summary.instances_to_move;
  return (
    <section>
      <h2>{t.lease.plan}</h2>
      <p>{t.lease.planSummary(plan.summary.hosts_to_clear, total, plan.summary.expected_seconds)}</p>
      <p>
        <progress max={Math.max(1, total)} value={plan.moved} aria-label={t.lease.plan} />{" "}
        {t.lease.planProgress(plan.moved, total)}
      </p>
      {plan.moves && (
        <ul class="plain">
          {plan.moves.slice(0, 200).map((move) => (
            <li key={move.instance_id}>
              {t.lease.move(move.from_host, move.to_host)} <small>{move.state}</small>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Usage({ lease }: { lease: Lease }): JSX.Element | null {
  const usage = lease.usage as Bodies["LeaseUsage"] | null | undefined;
  const begun = parse(lease.start_date) < clock.now();
  const billing = useLoaded<Bodies["BillingBody"]>(begun ? `cost-${lease.id}` : null, (signal) =>
    get("/v1/usage/billing", { lease_id: lease.id, start: rfc3339(parse(lease.start_date)) }, signal),
  );
  if (!usage) return null;
  const rows = (["reserved", "reserved_so_far", "used"] as const).flatMap((part) =>
    Object.entries(usage[part])
      .filter(([unit, value]) => unit in t.lease.units && typeof value === "number" && value > 0)
      .map(([unit, value]) => ({ part, unit, value: value as number })),
  );
  if (rows.length === 0) return null;
  const units = [...new Set(rows.map((row) => row.unit))];
  const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
  return (
    <section>
      <h2>{t.lease.usage}</h2>
      <table class="figures">
        <thead>
          <tr>
            <td />
            {(["reserved", "reserved_so_far", "used"] as const).map((part) => (
              <th key={part} scope="col">
                {t.lease.usageRow[part]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {units.map((unit) => (
            <tr key={unit}>
              <th scope="row">{t.lease.units[unit]}</th>
              {(["reserved", "reserved_so_far", "used"] as const).map((part) => {
                const value = rows.find((row) => row.unit === unit && row.part === part)?.value;
                return <td key={part}>{value === undefined ? "–" : number.format(value)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {lease.cost && <p>{t.lease.costInAll(Number(lease.cost.amount).toFixed(2), lease.cost.currency)}</p>}
      {lease.cost && billing.data && (
        <p>
          {t.lease.cost(
            billing.data.billing.reduce((sum, line) => sum + Number(line.amount), 0).toFixed(2),
            billing.data.currency,
          )}
        </p>
      )}
    </section>
  );
}

function Events({ lease }: { lease: Lease }): JSX.Element {
  const now = useNow(() => clock.now(), 5000);
  const events = [...lease.events].sort((one, other) => parse(one.time) - parse(other.time));
  return (
    <section>
      <h2>{t.lease.events}</h2>
      <table class="list short">
        <tbody>
          {events.map((event) => (
            <tr key={event.id}>
              <td>
                <Time at={parse(event.time)} now={now} />
              </td>
              <td>{t.lease.eventNames[event.event_type] ?? event.event_type}</td>
              <td>{t.lease.eventStatus[event.status] ?? event.status}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function History({ id }: { id: string }): JSX.Element | null {
  const now = useNow(() => clock.now(), 5000);
  const loaded = useLoaded<Bodies["UsageEventsBody"]>(`history-${id}`, (signal) =>
    get("/v1/usage/events", { lease_id: id, limit: 200 }, signal),
  );
  const events = loaded.data?.events ?? [];
  if (events.length === 0) return null;
  return (
    <section>
      <h2>{t.lease.happened}</h2>
      <table class="list short">
        <tbody>
          {events.map((event) => (
            <tr key={event.number}>
              <td>
                <Time at={parse(event.timestamp)} now={now} />
              </td>
              <td>{event.event.replace(".", " ").replaceAll("_", " ")}</td>
              <td>
                <Status status={event.status} />
              </td>
              <td>{event.reason ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const endActionName = (action: string): string => t.lease.endActions[action] ?? action;

/** Changes or ends a lease. The effect of each change is shown before it is made. */
function Actions({ lease, edge }: { lease: Lease; edge: Edge | null }): JSX.Element | null {
  const { zone, session } = useContextOf();
  const was = period(lease);
  const hosts = lease.reservations.find(
    (reservation) => (reservation as { resource_type?: string }).resource_type === "physical:host",
  ) as (Lease["reservations"][number] & { min: number; max: number }) | undefined;
  const shared = lease.reservations.some((reservation) =>
    ["virtual:instance", "flavor:instance"].includes((reservation as { resource_type?: string }).resource_type ?? ""),
  );
  const [name, setName] = useState(lease.name);
  const [start, setStart] = useState(edge?.side === "start" ? edge.time : was.start);
  const [end, setEnd] = useState(edge?.side === "end" ? edge.time : was.end);
  const [count, setCount] = useState(hosts?.max ?? 0);
  const [endAction, setEndAction] = useState(lease.end_action);
  // Fields that were not edited follow changes made elsewhere.
  const seen = useRef({ name: lease.name, ...was, count: hosts?.max ?? 0, endAction: lease.end_action });
  useEffect(() => {
    const before = seen.current;
    const now = { name: lease.name, ...was, count: hosts?.max ?? 0, endAction: lease.end_action };
    seen.current = now;
    setName((value) => (value === before.name ? now.name : value));
    setStart((value) => (value === before.start ? now.start : value));
    setEnd((value) => (value === before.end ? now.end : value));
    setCount((value) => (value === before.count ? now.count : value));
    setEndAction((value) => (value === before.endAction ? now.endAction : value));
  }, [lease.name, was.start, was.end, hosts?.max, lease.end_action]);
  const [answer, setAnswer] = useState<
    { kind: "none" | "asking" | "can" | "done" } | { kind: "cannot"; error: ApiError }
  >({ kind: "none" });
  const [asks, setAsks] = useState(false);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const guests = useGuests(lease.id);
  const over = lease.status === "TERMINATED" || lease.status === "DELETING" || lease.status === "TERMINATING";
  const mayChange = may(session, "leases:put");
  const mayDelete = may(session, "leases:delete");

  const body = useMemo((): LeaseChange | null => {
    const change: LeaseChange = {};
    if (name !== lease.name && name.trim()) change.name = name;
    if (start !== was.start) change.start_date = rfc3339(start);
    if (end !== was.end) change.end_date = rfc3339(end);
    if (hosts && count !== hosts.max)
      change.reservations = [{ id: hosts.id, min: count, max: count }];
    if (endAction !== lease.end_action) change.end_action = endAction;
    return Object.keys(change).length > 0 ? change : null;
  }, [name, start, end, count, endAction, lease.name, was.start, was.end, hosts?.max, hosts?.id, lease.end_action]);
  const settled = useSettled(body, 250);
  useEffect(() => {
    if (!settled) {
      setAnswer((before) => (before.kind === "done" ? before : { kind: "none" }));
      return;
    }
    const controller = new AbortController();
    setAnswer({ kind: "asking" });
    changeLease(lease.id, settled, true, controller.signal)
      .then(() => setAnswer({ kind: "can" }))
      .catch((error: unknown) => {
        if (!controller.signal.aborted && error instanceof ApiError) setAnswer({ kind: "cannot", error });
      });
    return () => controller.abort();
  }, [settled, lease.id]);

  if (over || !(mayChange || mayDelete)) return null;
  const guarded = async (action: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      await action();
      changes.tell();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error.status === 409 ? new ApiError(409, t.lease.conflict, error.hint, error.offers) : error);
    } finally {
      setBusy(false);
    }
  };
  const taken = (changed: Lease): void => {
    const now = period(changed);
    setStart(now.start);
    setEnd(now.end);
    setAnswer({ kind: "done" });
  };
  const accept = (offer: Offer): void => {
    const terms = period(offer.lease);
    if (!offer.id) {
      setStart(terms.start);
      setEnd(terms.end);
      const resized = offer.lease.reservations[0] as { max?: number } | undefined;
      if (hosts && resized?.max) setCount(resized.max);
      return;
    }
    const { id } = offer;
    void guarded(async () => taken(await acceptOffer(id)));
  };
  const says: string[] = [];
  if (start !== was.start)
    says.push(
      start > was.start
        ? t.lease.startsLater(length(start - was.start))
        : t.lease.startsEarlier(length(was.start - start)),
    );
  if (end !== was.end)
    says.push(
      end > was.end ? t.lease.becomesLonger(length(end - was.end)) : t.lease.becomesShorter(length(was.end - end)),
    );
  if (hosts && count !== hosts.max) says.push(t.lease.resized(count));
  if (endAction !== lease.end_action) says.push(t.lease.endActionBecomes(endActionName(endAction)));
  if (name !== lease.name) says.push(t.lease.renamed(name.slice(0, 60)));
  const active = lease.status !== "PENDING";
  const inside = guests.data?.instances.filter((instance) => instance.lease_id === lease.id).length ?? 0;
  const time = (label: string, value: number, set: (value: number) => void): JSX.Element => (
    <label class="field">
      <span>{label}</span>
      <input
        type="datetime-local"
        required
        value={forInput(value, zone)}
        onInput={(event) => {
          const read = fromInput(event.currentTarget.value, zone);
          // Without an edit, the value keeps its seconds, which the field doesn't show.
          if (read !== null) set(read);
        }}
      />
    </label>
  );

  return (
    <section class="actions">
      <h2>{t.lease.actions}</h2>
      {mayChange && (
        <form
          autocomplete="off"
          onSubmit={(event) => {
            event.preventDefault();
            if (body) void guarded(async () => taken(await changeLease(lease.id, body, false)));
          }}
        >
          <label class="field">
            <span>{t.lease.name}</span>
            <input required maxLength={10_000} value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <div class="row">
            {lease.status === "PENDING" && time(t.lease.newStart, start, setStart)}
            {time(t.lease.newEnd, end, setEnd)}
            {hosts && (
              <label class="field narrow">
                <span>{t.lease.newCount}</span>
                <input
                  type="number"
                  min={1}
                  max={1_000_000}
                  required
                  value={count}
                  onInput={(event) => setCount(event.currentTarget.valueAsNumber || count)}
                />
              </label>
            )}
            <label class="field">
              <span>{t.lease.newEndAction}</span>
              <select value={endAction} onChange={(event) => setEndAction(event.currentTarget.value)}>
                {endActions(shared).map((action) => (
                  <option key={action} value={action}>
                    {endActionName(action)}
                  </option>
                ))}
              </select>
            </label>
          </div>
          {failure ? (
            <Offers error={failure} busy={busy} use={accept} accept={accept} />
          ) : answer.kind === "cannot" ? (
            <Offers error={answer.error} busy={busy} use={accept} accept={accept} />
          ) : (
            <p role="status" class={answer.kind === "can" || answer.kind === "done" ? "ok" : "note"}>
              {answer.kind === "asking"
                ? t.lease.checking
                : answer.kind === "can" && says.length > 0
                  ? t.lease.changeOk(says.join(", "))
                  : answer.kind === "done"
                    ? t.lease.applied
                    : null}
            </p>
          )}
          <div class="buttons">
            {mayDelete && (
              <button type="button" class="danger" onClick={() => setAsks(true)}>
                {active ? t.lease.endNow : t.lease.deleteIt}
              </button>
            )}
            <button type="submit" class="primary" disabled={busy || !body || answer.kind !== "can"}>
              {t.lease.apply}
            </button>
          </div>
        </form>
      )}
      {!mayChange && mayDelete && (
        <button type="button" class="danger" onClick={() => setAsks(true)}>
          {active ? t.lease.endNow : t.lease.deleteIt}
        </button>
      )}
      {asks && (
        <Confirm
          text={
            active
              ? t.lease.endingActive(inside, endActionName(lease.end_action))
              : t.lease.endingPending
          }
          verb={active ? t.lease.confirmEnd : t.lease.confirmDelete}
          busy={busy}
          error={failure}
          no={() => setAsks(false)}
          yes={() =>
            void guarded(async () => {
              await request("DELETE", path("leases", lease.id));
              setAsks(false);
              go(["leases"]);
            })
          }
        />
      )}
    </section>
  );
}
