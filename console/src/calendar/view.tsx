// The start page: the calendar with its toolbar, free hosts and drawer, or a list of leases on phones.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, type Availability, changeLease, clock, get, period } from "../api/client";
import { type Draft as FormDraft, emptyDraft, keepDraft, keptName, withOffer } from "../draft";
import { LeaseForm, useAnswer } from "../form";
import { LeasePanel } from "../lease";
import { Empty, Failure, Stale, Waiting } from "../parts";
import { adjust, go, href, type Route } from "../route";
import { may, useContextOf, useLoaded, usePreference, useSettled } from "../state";
import { t } from "../texts";
import { Cards } from "./cards";
import { type Calendar, loadCalendar, MOST_HOSTS } from "./data";
import { Find, FreeStrip } from "./free";
import * as geometry from "./geometry";
import { DAY, HOUR, MINUTE } from "./geometry";
import { type Draft, type Edge, Timeline, type TimelineProps } from "./timeline";
import { length, rfc3339 } from "./zone";

const SPANS = { hour: HOUR, day: DAY, week: 7 * DAY, month: 31 * DAY, quarter: 92 * DAY, year: 366 * DAY };
type Span = keyof typeof SPANS;
const LAYERS = ["offer", "instance", "preemptible", "maintenance", "power"] as const;
/** Up to this width, a list replaces the timeline. */
const NARROW = "(max-width: 700px)";

export function CalendarView({ route, theme }: { route: Route; theme: string }): JSX.Element {
  const narrow = useMatches(NARROW);
  return (
    <div class="calendar-page">
      <h1 class="visually-hidden">{t.calendar.title}</h1>
      {narrow ? <Cards /> : <Wide route={route} theme={theme} />}
    </div>
  );
}

function useMatches(query: string): boolean {
  const [matches, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const follow = (): void => set(list.matches);
    list.addEventListener("change", follow);
    return () => list.removeEventListener("change", follow);
  }, [query]);
  return matches;
}

/** Dry run of a change while an edge of a lease is dragged. */
function useEdgeAnswer(edge: Edge | null): TimelineProps["edgeAnswer"] {
  const asked = useSettled(edge, 200, true);
  const [answer, setAnswer] = useState<{ of: Edge; error: ApiError | null } | null>(null);
  useEffect(() => {
    if (!asked) return;
    const controller = new AbortController();
    const change = asked.side === "end" ? { end_date: rfc3339(asked.time) } : { start_date: rfc3339(asked.time) };
    changeLease(asked.lease, change, true, controller.signal)
      .then(() => setAnswer({ of: asked, error: null }))
      .catch((error: unknown) => {
        if (!controller.signal.aborted && error instanceof ApiError) setAnswer({ of: asked, error });
      });
    return () => controller.abort();
  }, [asked?.lease, asked?.side, asked?.time]);
  return useMemo(() => {
    const lease = edge?.lease ?? null;
    if (!edge || !answer || !same(edge, answer.of))
      return { look: "asking", label: t.calendar.asking, offers: [], lease };
    const { error } = answer;
    if (!error) return { look: "can", label: t.calendar.can, offers: [], lease };
    const kind = edge.side === "end" ? "shorter_duration" : "later_start";
    const offers = error.offers
      .filter((offer) => offer.kind === kind)
      .map((offer) => ({ ...period(offer.lease), label: t.form.offers[kind] ?? kind }));
    return { look: "cannot", label: refusalLabel(error), offers, lease };
  }, [edge, answer]);
}

const same = (one: Edge, other: Edge): boolean =>
  one.lease === other.lease && one.side === other.side && one.time === other.time;

/** Reason for a refusal, cut to fit the calendar. */
const refusalLabel = (error: ApiError): string => (error.hint ?? (error.message || t.calendar.cannot)).slice(0, 120);

/** A period that starts an eighth of its length before `now`. */
const around = (now: number, span: number) => ({ start: now - span / 8, end: now + (span * 7) / 8 });

function Wide({ route, theme }: { route: Route; theme: string }): JSX.Element {
  const { zone, session, names } = useContextOf();
  const [scale, setScale] = useState(() => {
    const [from, to] = [Date.parse(route.query.get("from") ?? ""), Date.parse(route.query.get("to") ?? "")];
    return to - from >= MINUTE ? { start: from, end: to } : around(clock.now(), SPANS.week);
  });
  // False until the service's clock is known. The initial period is then moved to the service's present.
  const settled = useRef(route.query.has("from"));
  const [groupBy, setGroupBy] = usePreference<string>("group", "pool");
  const [dense, setDense] = usePreference<"yes" | "no">("dense", "no");
  const [hidden, setHidden] = usePreference<string>("hidden-layers", "");
  const layers = useMemo(() => new Set(LAYERS.filter((layer) => !hidden.split(",").includes(layer))), [hidden]);
  const [hosts, setHosts] = useState(0);
  const selected = route.query.get("lease");
  const [edge, setEdge] = useState<Edge | null>(null);
  const [dragged, setDragged] = useState<Edge | null>(null);
  const edgeAnswer = useEdgeAnswer(dragged ?? (edge?.lease === selected ? edge : null));
  const [draft, setDraft] = useState<{ at: Draft; form: FormDraft; done: boolean } | null>(null);
  const answer = useAnswer(draft?.form ?? null, draft?.done === false);

  const width = Math.max(300, innerWidth - 300);
  const wantedBucket = geometry.bucketMinutes({ ...scale, width }, hosts);
  const wanted = geometry.loadWindow({ ...scale, width });
  const [{ window, bucket }, setAsked] = useState({ window: wanted, bucket: wantedBucket });
  // A margin around the visible period is loaded. Load again when the view gets close to its edge, or is much shorter.
  const span = scale.end - scale.start;
  const room = Math.min(0.1 * span, DAY);
  const inside = window.start <= scale.start - room && window.end >= scale.end + room;
  const fits = window.end - window.start <= 6 * Math.max(span, DAY);
  const holds = inside && fits;
  useEffect(() => {
    if (holds && bucket === wantedBucket) return;
    // Change both at once. Otherwise the old period would be requested with the new bucket length.
    const next = { window: holds ? window : wanted, bucket: wantedBucket };
    const timer = setTimeout(() => setAsked(next), 120);
    return () => clearTimeout(timer);
  }, [holds, wanted.start, wanted.end, bucket, wantedBucket]);

  const key = `calendar ${window.start} ${window.end} ${groupBy} ${bucket ?? ""}`;
  const loaded = useLoaded<Calendar | null>(key, (signal) => loadCalendar(window, groupBy, bucket, signal));
  // The API only knows what is free from now on.
  const free = useLoaded<{ availability: Availability }>(
    window.end > clock.now() + MINUTE ? `free ${window.start} ${window.end}` : null,
    (signal) =>
      get(
        "/v1/availability",
        { start: rfc3339(Math.max(window.start, clock.now())), end: rfc3339(window.end) },
        signal,
      ),
  );
  const properties = useLoaded<{ resource_properties: { property: string }[] }>("properties", (signal) =>
    get("/v1/os-hosts/properties", {}, signal),
  );
  const calendar = loaded.data;
  useEffect(() => {
    if (!calendar) return;
    setHosts(calendar.hosts.length);
    if (!settled.current) {
      settled.current = true;
      setScale(around(calendar.now, SPANS.week));
    }
  }, [calendar]);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (settled.current && (location.hash === "" || location.hash.startsWith("#/?") || location.hash === "#/")) {
        adjust([], {
          from: rfc3339(scale.start),
          to: rfc3339(scale.end),
          lease: new URLSearchParams(location.hash.split("?")[1]).get("lease"),
        });
      }
    }, 400);
    return () => clearTimeout(timer);
  }, [scale, route]);

  const show = (span: number): void => setScale(around(clock.now(), span));
  const shift = (part: number): void => setScale({ start: scale.start + part * span, end: scale.end + part * span });
  const zoomed = (factor: number): void => setScale(strip(geometry.zoom({ ...scale, width: 1000 }, factor, 500)));
  const open = (lease: string | null): void => {
    setEdge(null);
    if (lease) setDraft(null);
    go([], { from: rfc3339(scale.start), to: rfc3339(scale.end), lease });
  };
  const drafted = (next: Draft | null, done: boolean): void => {
    if (!next || next.hosts.length === 0) {
      setDraft(null);
      return;
    }
    if (selected) open(null);
    // If the caller isn't allowed to see all names, request the same number of any hosts.
    const known = next.hosts.flatMap((host) => (host.name === null ? [] : [host.name]));
    const names = known.length === next.hosts.length ? known : [];
    setDraft((before) => ({
      at: next,
      done,
      form: {
        ...(before?.form ?? keptName(emptyDraft(clock.now()))),
        kind: "hosts",
        type: "SCHEDULE",
        start: next.start,
        end: next.end,
        min: next.hosts.length,
        max: next.hosts.length,
        only: names,
        where: "",
      },
    }));
  };
  const changeDraft = (form: FormDraft): void => {
    keepDraft(form);
    setDraft((before) => before && { ...before, form, at: { ...before.at, start: form.start, end: form.end } });
  };
  const offers = answer.kind === "cannot" ? answer.error.offers : [];
  const mayDraft = may(session, "leases:post");
  const groups = ["pool", ...(properties.data?.resource_properties.map((property) => property.property) ?? [])];

  return (
    <>
      <div class="toolbar" role="toolbar" aria-label={t.calendar.title}>
        <div class="group">
          <button type="button" aria-label={t.calendar.earlier} title={t.calendar.earlier} onClick={() => shift(-0.5)}>
            ◀
          </button>
          <button type="button" onClick={() => show(span)}>
            {t.calendar.today}
          </button>
          <button type="button" aria-label={t.calendar.later} title={t.calendar.later} onClick={() => shift(0.5)}>
            ▶
          </button>
        </div>
        <div class="group">
          <button
            type="button"
            aria-label={t.calendar.zoomOut}
            title={`${t.calendar.zoomOut} (-)`}
            onClick={() => zoomed(1 / 0.6)}
          >
            −
          </button>
          {(Object.keys(SPANS) as Span[]).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={Math.abs(span / SPANS[name] - 1) < 0.02}
              onClick={() => show(SPANS[name])}
            >
              {t.calendar.spans[name]}
            </button>
          ))}
          <button
            type="button"
            aria-label={t.calendar.zoomIn}
            title={`${t.calendar.zoomIn} (+)`}
            onClick={() => zoomed(0.6)}
          >
            +
          </button>
        </div>
        <label>
          {t.calendar.group}{" "}
          <select value={groupBy} onChange={(event) => setGroupBy(event.currentTarget.value)}>
            {groups.map((name) => (
              <option key={name} value={name}>
                {name === "pool" ? t.calendar.pool : name}
              </option>
            ))}
          </select>
        </label>
        <details class="menu">
          <summary>{t.calendar.layers}</summary>
          <div>
            {LAYERS.map((layer) => (
              <label key={layer}>
                <input
                  type="checkbox"
                  checked={layers.has(layer)}
                  onChange={(event) =>
                    setHidden(
                      LAYERS.filter((name) => (name === layer ? !event.currentTarget.checked : !layers.has(name))).join(
                        ",",
                      ),
                    )
                  }
                />
                {t.calendar.layer[layer]}
              </label>
            ))}
            <label>
              <input
                type="checkbox"
                checked={dense === "yes"}
                onChange={(event) => setDense(event.currentTarget.checked ? "yes" : "no")}
              />
              {t.calendar.dense}
            </label>
          </div>
        </details>
        {mayDraft && (
          <a class="button primary" href={href(["leases", "new"])} title={`${t.newLease} (n)`}>
            {t.newLease}
          </a>
        )}
        <Find
          draft={(form) => {
            const first = calendar?.hosts.filter((host) => host.status === "open").slice(0, form.min) ?? [];
            if (selected) open(null);
            setDraft({ at: { hosts: first, start: form.start, end: form.end }, form, done: true });
            if (form.start < scale.start || form.end > scale.end)
              setScale({ start: form.start - span / 4, end: form.start + (span * 3) / 4 });
          }}
        />
      </div>
      {calendar && <Stale error={loaded.error} />}
      <div class="calendar-body">
        <div class="calendar-main">
          {loaded.loading && <Waiting />}
          {!calendar && loaded.error && <Failure error={loaded.error} retry={loaded.reload} />}
          {calendar && calendar.hosts.length === 0 && (
            <Empty title={t.calendar.noHostsTitle}>
              <p>{t.calendar.noHosts}</p>
            </Empty>
          )}
          {calendar && calendar.hosts.length > 0 && (
            <>
              <Timeline
                calendar={calendar}
                scale={scale}
                zone={zone}
                groupBy={groupBy}
                dense={dense === "yes"}
                layers={layers}
                projects={names.projects}
                theme={theme}
                selected={selected}
                draft={
                  draft && {
                    ...draft.at,
                    look:
                      answer.kind === "can"
                        ? "can"
                        : answer.kind === "cannot" || answer.kind === "wrong"
                          ? "cannot"
                          : "asking",
                    label: `${length(draft.at.end - draft.at.start)}: ${answer.kind === "can" ? t.calendar.can : answer.kind === "wrong" ? answer.text : answer.kind === "cannot" ? refusalLabel(answer.error) : t.calendar.asking}`,
                    offers: draft.done
                      ? offers
                          .filter((offer) => offer.kind === "later_start")
                          .map((offer) => {
                            const reservation = offer.lease.reservations[0] as Record<string, unknown> | undefined;
                            return {
                              ...period(offer.lease),
                              hosts: Number(reservation?.max ?? 1),
                              label: t.form.offers[offer.kind] ?? offer.kind,
                            };
                          })
                      : [],
                  }
                }
                onScale={(next) => {
                  settled.current = true;
                  setScale(strip(next));
                }}
                onDraft={drafted}
                onOffer={(index) => {
                  const instead = edgeAnswer.offers[index];
                  if (!draft && edge && instead) {
                    setEdge({ ...edge, time: edge.side === "end" ? instead.end : instead.start });
                    return;
                  }
                  const offer = offers.filter((candidate) => candidate.kind === "later_start")[index];
                  if (draft && offer) changeDraft(withOffer(draft.form, offer, clock.now()));
                }}
                edgeAnswer={edgeAnswer}
                onEdge={(next, done) => {
                  setDragged(done ? null : next);
                  if (!next || !done) return;
                  open(next.lease);
                  setEdge(next);
                }}
                onOpen={(lease, page) => (page ? go(["leases", lease]) : open(lease))}
                onNew={() => go(["leases", "new"])}
                onToday={() => show(span)}
                mayDraft={mayDraft}
              />
              <FreeStrip availability={free.data?.availability ?? null} scale={scale} zone={zone} />
              <p class="footnote">
                {t.calendar.hosts(calendar.hosts.length)}
                {calendar.more && ` · ${t.calendar.moreHosts(MOST_HOSTS)}`}
                {mayDraft && ` · ${t.calendar.drag}`}
              </p>
            </>
          )}
        </div>
        {draft?.done && (
          <aside class="drawer" aria-label={t.form.title}>
            <header>
              <h2>{t.form.title}</h2>
              <button type="button" class="quiet" onClick={() => setDraft(null)}>
                {t.close}
              </button>
            </header>
            <LeaseForm
              compact
              draft={draft.form}
              answer={answer}
              change={changeDraft}
              made={(lease) => {
                keepDraft(null);
                setDraft(null);
                open(lease.id);
              }}
            />
          </aside>
        )}
        {!draft && selected && (
          <aside class="drawer" aria-label={t.nav.leases}>
            <LeasePanel id={selected} edge={edge?.lease === selected ? edge : null} close={() => open(null)} />
          </aside>
        )}
      </div>
    </>
  );
}

const strip = ({ start, end }: { start: number; end: number }) => ({ start, end });
