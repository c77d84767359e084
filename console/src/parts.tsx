// Components that several views share.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError, Lease, Reservation } from "./api/client";
import { length, parse, relative, stamp } from "./calendar/zone";
import { type Loaded, useContextOf } from "./state";
import { t } from "./texts";
import { showWhere } from "./where";

/** Maximum length of a shown name. Users choose names, so they can be long and in any direction (hence `<bdi>`). */
const LONGEST = 120;

export function Name({ text }: { text: string }): JSX.Element {
  const short = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return (
    <bdi class="name" title={text.slice(0, 1000)}>
      {short || "–"}
    </bdi>
  );
}

/** Name of a user or project with its ID as tooltip. Only the ID if the name is unknown. */
function Known({ id, name }: { id: string; name: string | undefined }): JSX.Element {
  if (!name || name === id) return <Name text={id} />;
  return (
    <bdi class="name" title={id.slice(0, 1000)}>
      {shorten(name, LONGEST)}
    </bdi>
  );
}

export function Project({ id }: { id: string }): JSX.Element {
  return <Known id={id} name={useContextOf().names.projects[id]} />;
}

export function User({ id }: { id: string }): JSX.Element {
  return <Known id={id} name={useContextOf().names.users[id]} />;
}

export function shorten(text: string, most = 60): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

export function Status({ status, degraded = false }: { status: string; degraded?: boolean }): JSX.Element {
  return (
    <>
      <span class={`status status-${status.toLowerCase()}`}>{t.status(status)}</span>
      {degraded && <span class="status status-error">{t.degraded}</span>}
    </>
  );
}

/** A time in the selected zone, with the relative time as tooltip. The other way round with `away`. */
export function Time({ at, now, away = false }: { at: number; now: number; away?: boolean }): JSX.Element {
  const { zone } = useContextOf();
  if (!Number.isFinite(at)) return <span>–</span>;
  const exact = `${stamp(at, zone)} ${zone}`;
  const far = relative(at, now);
  return (
    <time dateTime={new Date(at).toISOString()} title={away ? exact : far}>
      {away ? far : stamp(at, zone)}
    </time>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

/** Shown in place of content that could not be loaded. */
export function Failure({ error, retry }: { error: ApiError; retry: () => void }): JSX.Element {
  const [title, hint] =
    error.status === 403 || error.status === 401
      ? [t.service.forbiddenTitle, t.service.forbiddenHint]
      : error.status === 404
        ? [t.service.missingTitle, t.service.missingHint]
        : error.status <= 0
          ? [t.service.awayTitle, t.service.awayHint]
          : [t.service.failed(`${error.status} ${error.message}`), error.hint ?? ""];
  return (
    <Empty title={title}>
      <p>{hint}</p>
      <button type="button" onClick={retry}>
        {t.retry}
      </button>
    </Empty>
  );
}

/** Shown above content that could not be reloaded. */
export function Stale({ error }: { error: ApiError | null }): JSX.Element | null {
  if (!error) return null;
  return (
    <p class="banner" role="status">
      {error.status <= 0 ? t.service.away : t.service.failed(`${error.status} ${error.message}`)}
    </p>
  );
}

/** Shown while loading. After 4 s, says that it takes long. */
export function Waiting(): JSX.Element {
  const [slow, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), 4000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p class="waiting" role="status">
      {slow ? t.service.slow : t.loading}
    </p>
  );
}

/** Says whether content is loading, outdated or could not be loaded. Empty if it is up to date. */
export function LoadState({ loaded }: { loaded: Loaded<unknown> }): JSX.Element {
  return (
    <>
      <Stale error={loaded.data ? loaded.error : null} />
      {loaded.loading && <Waiting />}
      {!loaded.data && loaded.error && <Failure error={loaded.error} retry={loaded.reload} />}
    </>
  );
}

export function Search(props: { label: string; value: string; change: (text: string) => void }): JSX.Element {
  return (
    <input
      type="search"
      autocomplete="off"
      aria-label={props.label}
      placeholder={props.label}
      value={props.value}
      onInput={(event) => props.change(event.currentTarget.value)}
    />
  );
}

/** Shown in place of an empty list: there are no entries, or none match the search. */
export function NothingListed(props: {
  /** Number of entries without the search. Null while it is unknown. */
  all: number | null;
  shown: number;
  title: string;
  text: string;
  noneMatch: string;
  clear: () => void;
}): JSX.Element | null {
  if (props.all === null || props.shown > 0) return null;
  if (props.all === 0) {
    return (
      <Empty title={props.title}>
        <p>{props.text}</p>
      </Empty>
    );
  }
  return (
    <Empty title={props.noneMatch}>
      <button type="button" onClick={props.clear}>
        {t.leases.clear}
      </button>
    </Empty>
  );
}

export function CopyId({ id }: { id: string }): JSX.Element {
  const [done, set] = useState(false);
  const copy = (): void => {
    void navigator.clipboard?.writeText(id).then(() => {
      set(true);
      setTimeout(() => set(false), 1500);
    });
  };
  return (
    <button type="button" class="quiet" title={id} onClick={copy}>
      {done ? t.copied : t.copy}
    </button>
  );
}

export function gib(mib: number): string {
  const value = mib / 1024;
  return value >= 1024 ? `${Math.round(value / 102.4) / 10} TiB` : `${Math.round(value * 10) / 10} GiB`;
}

/** Name of the flavor at the time of the request. The API has it as JSON in a string. */
function flavorName(of: Record<string, unknown>): string {
  try {
    const flavor = JSON.parse(String(of.resource_properties)) as { name?: unknown };
    if (typeof flavor.name === "string") return shorten(flavor.name, 40);
  } catch {
    // Offers only have the ID.
  }
  return shorten(String(of.flavor_id ?? ""), 40);
}

/** Reserved resources: `2–3 hosts`. */
export function whatOf(reservation: Reservation): string {
  const of = reservation as Record<string, unknown>;
  const number = (name: string): number => Number(of[name] ?? 0);
  switch (of.resource_type) {
    case "physical:host":
      return t.what.hosts(number("min"), number("max"));
    case "virtual:instance":
      return t.what.instances(number("amount"), number("vcpus"), gib(number("memory_mb")));
    case "flavor:instance":
      return t.what.flavor(number("amount"), flavorName(of));
    case "virtual:floatingip":
      return t.what.addresses(number("amount"), String(of.network_id ?? ""));
    default:
      return String(of.resource_type ?? "");
  }
}

/** Requirements of a reservation. Empty: any host. */
export function whereOf(reservation: Reservation): string {
  const of = reservation as Record<string, unknown>;
  if (of.resource_type === "flavor:instance") return "";
  return [of.hypervisor_properties, of.resource_properties]
    .map((json) => showWhere(typeof json === "string" ? json : ""))
    .filter(Boolean)
    .join(" and ");
}

export const whatOfLease = (lease: Lease): string => lease.reservations.map(whatOf).join(", ");

export function lasts(lease: Lease): string {
  return length(parse(lease.end_date) - parse(lease.start_date));
}

/** Dialog before an action that affects other users. */
export function Confirm(props: {
  text: string;
  verb: string;
  busy: boolean;
  error: ApiError | null;
  yes: () => void;
  no: () => void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="confirm-text" onCancel={props.no} onClose={props.no}>
      <p id="confirm-text">{props.text}</p>
      {props.error && <Refusal error={props.error} />}
      <div class="buttons">
        <button type="button" onClick={props.no}>
          {t.lease.cancel}
        </button>
        <button type="button" class="danger" disabled={props.busy} onClick={props.yes}>
          {props.verb}
        </button>
      </div>
    </dialog>
  );
}

/** Message and hint of a failed request. */
export function Refusal({ error }: { error: ApiError }): JSX.Element {
  const text = error.status <= 0 ? t.service.awayTitle : error.message;
  return (
    <div class="refusal" role="alert">
      <strong>{text}</strong>
      {error.hint && <p>{error.hint}</p>}
    </div>
  );
}

/** Cuts a long list to its first entries, with a button for `size` more. */
export function usePart<T>(items: readonly T[], size = 200): [readonly T[], JSX.Element | null] {
  const [count, set] = useState(size);
  const rest = items.length - count;
  const button =
    rest > 0 ? (
      <button type="button" onClick={() => set(count + size)}>
        {t.more(Math.min(rest, size))}
      </button>
    ) : null;
  return [items.slice(0, count), button];
}
