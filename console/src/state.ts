// What views share: live revisions, loading with what was shown before kept, preferences, and who is signed in.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Bodies, type Session } from "./api/client";
import { keep, kept } from "./keep";

/** How long after a change views load again: changes come in bursts. */
const SETTLE = 400;
/** How often views load again without being told, in case an event was lost. */
const REFRESH = 30_000;
/** An answer that took long is asked for again only after so many times as long. */
const REST = 5;
/** How long after a failure a view tries again, and how long at most. */
const RETRY = [1000, 2000, 4000, 8000, 15_000];

type Listener = () => void;

/** Tells views that something has changed. */
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
   * Follows the service while the page is seen: a browser has few connections to a server, for all its pages together.
   * It connects again by itself, from the last revision on.
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
    // A stream that breaks, and one that is there again, are news as well.
    let lost = false;
    source.addEventListener("error", () => {
      if (!lost) this.tell();
      lost = true;
    });
    source.addEventListener("open", () => {
      if (lost) this.tell();
      lost = false;
    });
    // A stream that is refused for good (too many of them, say) is tried again later.
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
  /** Nothing is there yet. */
  loading: boolean;
  reload: () => void;
}

/**
 * Loads what a key stands for, again whenever something has changed. What was loaded stays while the service cannot be
 * reached; a new key that begins with the same word keeps it until the answer is there.
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
        // Nobody's answer changes by asking again.
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
 * The value when it has not changed for a while, so that not every key that is pressed is a request; or, where it changes
 * all the time, at most so often.
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

/** What people call users and projects, by identifier. */
export type KnownNames = Bodies["Names"];

export interface Context {
  session: Session;
  names: KnownNames;
  /** The time zone that times are shown in. */
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

/** Whether the rules let the user do this: `leases:post`. */
export function may(session: Session, rule: string): boolean {
  return session.rules[`blazar:${rule}`] ?? false;
}

/** The time of the service, every second or so. */
export function useNow(read: () => number, milliseconds = 1000): number {
  const [now, set] = useState(read);
  useEffect(() => {
    const timer = setInterval(() => set(read()), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
  return now;
}
