// State that views share: change events, loading that keeps earlier content, preferences, and the session.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Bodies, type Session } from "./api/client";
import { keep, kept } from "./keep";

/** Delay in ms from a change to reloading, because changes come in bursts. */
const SETTLE = 400;
/** Interval in ms at which views reload without an event, in case one was lost. */
const REFRESH = 30_000;
/** Minimum pause before reloading after a change, as a multiple of the time that the last load took. */
const REST = 5;
/** Delays in ms between retries after a failure. The last one repeats. */
const RETRY = [1000, 2000, 4000, 8000, 15_000];

type Listener = () => void;

/** Tells views about changes, from the service's event stream or made by this page. */
class Changes {
  private readonly listeners = new Set<Listener>();
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private timerOfStream: ReturnType<typeof setTimeout> | null = null;

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell = (): void => {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      for (const listener of [...this.listeners]) listener();
    }, SETTLE);
  };

  /**
   * Follows the service's event stream while the page is visible, because browsers limit connections per server across
   * all pages. An `EventSource` reconnects by itself, from the last revision.
   */
  start(): void {
    document.addEventListener("visibilitychange", this.followed);
    this.connect();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.followed);
    this.disconnect();
  }

  private readonly followed = (): void => {
    if (document.hidden) {
      this.disconnect();
    } else {
      this.connect();
      this.tell();
    }
  };

  private connect(): void {
    this.disconnect();
    if (document.hidden) return;
    const source = new EventSource("/v1/calendar/changes");
    source.addEventListener("revision", this.tell);
    // Losing the stream and getting it back count as changes too.
    let lost = false;
    source.addEventListener("error", () => {
      if (!lost) this.tell();
      lost = true;
    });
    source.addEventListener("open", () => {
      if (lost) this.tell();
      lost = false;
    });
    // An `EventSource` gives up if it is rejected, for example because there are too many. Retry later.
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED && this.source === source) {
        this.source = null;
        this.timerOfStream = setTimeout(() => this.connect(), REFRESH);
      }
    });
    this.source = source;
  }

  private disconnect(): void {
    if (this.timerOfStream !== null) clearTimeout(this.timerOfStream);
    this.timerOfStream = null;
    const source = this.source;
    this.source = null;
    source?.close();
  }
}

export const changes = new Changes();

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  /** Whether there is neither data nor an error yet. */
  loading: boolean;
  reload: () => void;
}

/**
 * Loads the data of a key, and reloads it after each change. Data stays while the service is unreachable. It also stays
 * until the answer for a new key arrives if both keys start with the same word.
 */
export function useLoaded<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [shown, setShown] = useState<{ kind: string; data: T | null; error: ApiError | null }>({
    kind: "",
    data: null,
    error: null,
  });
  const current = useRef(load);
  current.current = load;
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    if (key === null) return;
    const kind = key.split(" ")[0] ?? "";
    let controller = new AbortController();
    let failures = 0;
    let timer: ReturnType<typeof setTimeout>;
    let live = true;
    let rests = 0;
    const run = async (): Promise<void> => {
      clearTimeout(timer);
      controller.abort();
      controller = new AbortController();
      const { signal } = controller;
      let wait = REFRESH;
      const began = performance.now();
      try {
        const data = await current.current(signal);
        if (signal.aborted || !live) return;
        failures = 0;
        rests = performance.now() + REST * (performance.now() - began);
        setShown({ kind, data, error: null });
      } catch (error) {
        if (signal.aborted || !live) return;
        const known = error instanceof ApiError ? error : new ApiError(-1, String(error));
        // Retrying a client error gives the same answer.
        const final = known.status >= 400 && known.status < 500 && known.status !== 429;
        wait = final
          ? REFRESH
          : Math.max(RETRY[Math.min(failures, RETRY.length - 1)] ?? REFRESH, (known.retryAfter ?? 0) * 1000);
        failures += 1;
        setShown((before) => ({ kind, data: final || before.kind !== kind ? null : before.data, error: known }));
      }
      timer = setTimeout(() => document.hidden || void run(), wait);
    };
    again.current = () => void run();
    setShown((before) => (before.kind === kind ? { ...before, error: null } : { kind, data: null, error: null }));
    void run();
    const unsubscribe = changes.subscribe(() => {
      clearTimeout(timer);
      timer = setTimeout(() => void run(), Math.max(0, rests - performance.now()));
    });
    return () => {
      live = false;
      controller.abort();
      clearTimeout(timer);
      unsubscribe();
    };
  }, [key]);
  const reload = useCallback(() => again.current(), []);
  return { data: shown.data, error: shown.error, loading: shown.data === null && shown.error === null, reload };
}

/**
 * Debounces a value, so that not every keystroke is a request. With `meanwhile`, throttles it instead, for values that
 * change all the time.
 */
export function useSettled<T>(value: T, milliseconds: number, meanwhile = false): T {
  const [settled, settle] = useState(value);
  const last = useRef(0);
  useEffect(() => {
    const wait = meanwhile ? Math.max(0, milliseconds - (Date.now() - last.current)) : milliseconds;
    const timer = setTimeout(() => {
      last.current = Date.now();
      settle(() => value);
    }, wait);
    return () => clearTimeout(timer);
  }, [value, milliseconds, meanwhile]);
  return settled;
}

/** A preference of the user in this browser. Never used for secrets. */
export function usePreference<T extends string>(name: string, standard: T): [T, (value: T) => void] {
  const [value, set] = useState<T>(() => (kept("localStorage", name) as T | null) ?? standard);
  const change = useCallback(
    (next: T) => {
      set(next);
      keep("localStorage", name, next);
    },
    [name],
  );
  return [value, change];
}

/** Names of users and projects by ID. */
export type KnownNames = Bodies["Names"];

export interface Context {
  session: Session;
  names: KnownNames;
  /** IANA name of the zone in which times are shown. */
  zone: string;
}

export const ContextOf = createContext<Context>({
  session: {
    user: "",
    user_name: null,
    project_id: "",
    project_name: null,
    roles: [],
    authentication: "none",
    rules: {},
  },
  names: { users: {}, projects: {} },
  zone: "UTC",
});

export const useContextOf = (): Context => useContext(ContextOf);

/** Whether the policy allows the user a rule such as `leases:post`. */
export function may(session: Session, rule: string): boolean {
  return session.rules[`blazar:${rule}`] ?? false;
}

/** The time from `read`, updated every `milliseconds`. */
export function useNow(read: () => number, milliseconds = 1000): number {
  const [now, set] = useState(read);
  useEffect(() => {
    const timer = setInterval(() => set(read()), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
  return now;
}
