// Availability: the number of free hosts over time, and the search for the next free slot.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Availability, clock, get } from "../api/client";
import { type Draft as FormDraft, emptyDraft, keptName } from "../draft";
import { useContextOf, useLoaded } from "../state";
import { t } from "../texts";
import { parseLength, WhereError, whereJson } from "../where";
import * as geometry from "./geometry";
import { clock as clockText, day, stamp } from "./zone";

/** A chart of the number of free hosts, below the timeline and at its scale. */
export function FreeStrip({
  availability,
  scale,
  zone,
}: {
  availability: Availability | null;
  scale: { start: number; end: number };
  zone: string;
}): JSX.Element {
  const [tip, setTip] = useState<string | null>(null);
  const width = 1000;
  const high = 40;
  const total = availability?.total ?? 0;
  const steps = availability?.steps ?? [];
  const x = (time: number): number => Math.min(width, Math.max(0, geometry.xOf({ ...scale, width }, time)));
  const path = steps
    .map((step) => {
      const y = high - (step.free / Math.max(1, total)) * (high - 3);
      return `L${x(Date.parse(step.start)).toFixed(1)},${y.toFixed(1)}L${x(Date.parse(step.end)).toFixed(1)},${y.toFixed(1)}`;
    })
    .join("");
  const from = x(Date.parse(steps[0]?.start ?? ""));
  const to = x(Date.parse(steps[steps.length - 1]?.end ?? ""));
  const stepAt = (time: number) => steps.find((step) => Date.parse(step.start) <= time && Date.parse(step.end) > time);
  const current = stepAt(clock.now());
  return (
    <div class="free-strip">
      <div class="free-label">
        <strong>{t.calendar.freeHosts}</strong>
        <span>{tip ?? (current ? t.calendar.freeNow(current.free, total) : "")}</span>
      </div>
      <svg
        viewBox={`0 0 ${width} ${high}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={steps
          .slice(0, 20)
          .map((step) => t.calendar.freeAt(step.free, total, stamp(Date.parse(step.start), zone)))
          .join("; ")}
        onPointerLeave={() => setTip(null)}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const time = geometry.timeAt({ ...scale, width: box.width }, event.clientX - box.left);
          const step = stepAt(time);
          setTip(step ? `${step.free}/${total} · ${stamp(time, zone).slice(5)}` : null);
        }}
      >
        {path && to > from && <path class="free-area" d={`M${from},${high}${path}L${to},${high}Z`} />}
      </svg>
    </div>
  );
}

/** Finds the earliest slots with enough free hosts. */
export function Find({ draft }: { draft: (form: FormDraft) => void }): JSX.Element {
  const { zone } = useContextOf();
  const [count, setCount] = useState(1);
  const [where, setWhere] = useState("");
  const [lasts, setLasts] = useState("4h");
  const [asked, setAsked] = useState<{ count: number; where: string; minutes: number; json: string } | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const slash = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (box.current) box.current.open = true;
      field.current?.focus();
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  const found = useLoaded<{ availability: Availability }>(asked && `find ${JSON.stringify(asked)}`, (signal) =>
    get(
      "/v1/availability",
      { amount: asked?.count, duration: `${asked?.minutes}m`, resource_properties: asked?.json },
      signal,
    ),
  );
  const best = found.data?.availability.best ?? [];
  const total = found.data?.availability.total ?? 0;
  return (
    <details class="menu find" ref={box}>
      <summary>{t.find.title}</summary>
      <form
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          const minutes = parseLength(lasts);
          if (minutes === null) {
            setWrong(t.find.badLength);
            return;
          }
          try {
            setAsked({ count, where, minutes, json: whereJson(where) });
            setWrong(null);
            found.reload();
          } catch (error) {
            if (!(error instanceof WhereError)) throw error;
            setWrong(error.message);
          }
        }}
      >
        <label>
          {t.find.count}{" "}
          <input
            ref={field}
            type="number"
            min={1}
            max={100000}
            required
            value={count}
            onInput={(event) => setCount(event.currentTarget.valueAsNumber || 1)}
          />
        </label>
        <label>
          {t.find.where}{" "}
          <input
            value={where}
            placeholder={t.find.whereHint}
            spellcheck={false}
            onInput={(event) => setWhere(event.currentTarget.value)}
          />
        </label>
        <label>
          {t.find.length}{" "}
          <input class="short" value={lasts} required onInput={(event) => setLasts(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          {t.find.submit}
        </button>
        <div class="found" role="status">
          {wrong && <p class="wrong">{wrong}</p>}
          {!wrong && found.error && (
            <p class="wrong">
              {found.error.message || t.service.awayTitle}
              {found.error.hint && ` – ${found.error.hint}`}
            </p>
          )}
          {!wrong && asked && found.data && (
            <>
              <p>{best.length > 0 ? t.find.match(total) : t.find.none(asked.count, total)}</p>
              <ul>
                {best.slice(0, 5).map((slot) => (
                  <li key={slot.start}>
                    <button
                      type="button"
                      onClick={() => {
                        if (box.current) box.current.open = false;
                        draft({
                          ...keptName(emptyDraft(clock.now())),
                          min: asked.count,
                          max: asked.count,
                          where: asked.where,
                          start: Date.parse(slot.start),
                          end: Date.parse(slot.end),
                        });
                      }}
                    >
                      {slotText(Date.parse(slot.start), Date.parse(slot.end), zone)}
                    </button>
                  </li>
                ))}
              </ul>
            </>
          )}
        </div>
      </form>
    </details>
  );
}

/** `Wed 25 Nov 10:00 – 14:00`. Also has the day of the end if it differs. */
function slotText(start: number, end: number, zone: string): string {
  const [first, last] = [day(start, zone), day(end, zone)];
  return `${first} ${clockText(start, zone)} – ${first === last ? "" : `${last} `}${clockText(end, zone)}`;
}
