// The frame around the views: signing in, navigation, time zone, theme, and the view for the current address.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  actFor,
  ApiError,
  clock,
  get,
  onSignedOut,
  onUserChanged,
  type Session,
  session as sessions,
} from "./api/client";
import { forgetCalendar } from "./calendar/data";
import { CalendarView } from "./calendar/view";
import { AdminView } from "./admin";
import { FleetView } from "./fleet";
import { emptyDraft, keepDraft, keptDraft } from "./draft";
import { LeaseForm, useAnswer } from "./form";
import { forget, keepFor } from "./keep";
import { InstancesView } from "./instances";
import { LeaseView } from "./lease";
import { LeasesView } from "./leases";
import { Empty, Failure, Waiting } from "./parts";
import { PlacementView } from "./placement";
import { go, href, type Route, useRoute } from "./route";
import { SignIn } from "./signin";
import { changes, ContextOf, type KnownNames, may, useLoaded, usePreference } from "./state";
import { announce, clearAddress, identity, restart, useOtherTabs } from "./tabs";
import { t } from "./texts";
import { UsageView } from "./usage";

type Entry =
  | { state: "asking" }
  | { state: "away"; error: ApiError }
  | { state: "out"; over: boolean; logins: string[] }
  | { state: "changed" }
  | { state: "kept in"; error: ApiError }
  | { state: "in"; session: Session };

export function App(): JSX.Element {
  const [entry, setEntry] = useState<Entry>({ state: "asking" });
  const [theme, setTheme] = usePreference<"system" | "light" | "dark">("theme", "system");
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  // User and project for which this page was opened. It never serves another user.
  const who = useRef<string | null>(null);
  const enter = (session: Session): void => {
    const now = identity(session);
    const another = keepFor(now);
    announce(now);
    if (another || (who.current !== null && who.current !== now)) {
      restart();
      return;
    }
    who.current = now;
    actFor(session);
    setEntry({ state: "in", session });
  };
  const change = (): void => {
    forget(["sessionStorage"]);
    clearAddress();
    setEntry({ state: "changed" });
  };
  const leave = (): void => {
    sessions
      .end()
      .catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
        // The session has already ended.
        if (error.status === 401) return;
        if (error.status !== 412) setEntry({ state: "kept in", error });
        throw error;
      })
      .then(() => {
        forget();
        announce(null);
        restart();
      })
      .catch(() => {});
  };
  useOtherTabs((now) => {
    if (now === null) {
      forget();
      if (who.current !== null) restart();
    } else if (who.current !== null && who.current !== now) change();
    else if (entry.state === "out") ask();
  });
  const ask = (): void => {
    sessions
      .read()
      .then((answer) => enter(answer.session))
      .catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
        if (error.status === 401) setEntry({ state: "out", over: false, logins: error.logins });
        else {
          setEntry({ state: "away", error });
          setTimeout(ask, 3000);
        }
      });
  };
  useEffect(() => {
    // Several requests can be rejected at once. Only the first one ends the session.
    onSignedOut((logins) =>
      setEntry((before) => (before.state === "in" ? { state: "out", over: true, logins } : before)),
    );
    onUserChanged(change);
    ask();
  }, []);
  const inside = entry.state === "in";
  useEffect(() => {
    if (!inside) return;
    changes.start();
    return () => {
      changes.stop();
      forgetCalendar();
    };
  }, [inside]);

  switch (entry.state) {
    case "asking":
      return (
        <main class="page">
          <Waiting />
        </main>
      );
    case "away":
      return (
        <main class="page">
          <Failure error={entry.error} retry={ask} />
        </main>
      );
    case "out":
      return <SignIn over={entry.over} logins={entry.logins} done={enter} />;
    case "changed":
      return (
        <main class="page">
          <Empty title={t.userChanged.title}>
            <p role="alert">{t.userChanged.hint}</p>
            <button type="button" class="primary" onClick={restart}>
              {t.userChanged.go}
            </button>
          </Empty>
        </main>
      );
    case "kept in":
      return (
        <main class="page">
          <Empty title={t.signOutFailed}>
            <p role="alert">{entry.error.status <= 0 ? t.service.awayTitle : entry.error.message}</p>
            <button type="button" class="primary" onClick={leave}>
              {t.retry}
            </button>
          </Empty>
        </main>
      );
    case "in":
      return <Frame session={entry.session} theme={theme} setTheme={setTheme} leave={leave} />;
  }
}

const here = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

function Frame(props: {
  session: Session;
  theme: "system" | "light" | "dark";
  setTheme: (theme: "system" | "light" | "dark") => void;
  leave: () => void;
}): JSX.Element {
  const { session, theme } = props;
  const [zone, setZone] = usePreference<string>("zone", "UTC");
  const route = useRoute();
  const [first = "calendar"] = route.parts;
  const known = useLoaded<KnownNames>(may(session, "names:get") ? "names" : null, (signal) =>
    get("/v1/names", {}, signal),
  ).data;
  // The session names its own user and project, even if the names of others are hidden.
  const names = useMemo((): KnownNames => {
    const own = (id: string, name: string | null) => (name ? { [id]: name } : {});
    return {
      users: { ...known?.users, ...own(session.user, session.user_name) },
      projects: { ...known?.projects, ...own(session.project_id, session.project_name) },
    };
  }, [session, known]);
  const context = useMemo(() => ({ session, zone, names }), [session, zone, names]);
  const needs: Record<string, string> = {
    fleet: "oshosts:get",
    placement: "placement:post",
    admin: "freepools:get",
  };
  const views = (["calendar", "leases", "fleet", "instances", "placement", "usage", "admin"] as const).filter(
    (view) => !needs[view] || may(session, needs[view]),
  );
  useEffect(() => {
    const name = t.nav[first as keyof typeof t.nav] ?? "";
    document.title = name ? `${name} · ${t.product}` : t.product;
    document.getElementById("content")?.scrollTo(0, 0);
    scrollTo(0, 0);
  }, [first, route.parts[1]]);
  const zones = [...new Set(["UTC", here(), zone])];
  return (
    <ContextOf.Provider value={context}>
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        {t.skip}
      </a>
      <header class="frame-head">
        <a class="logo" href="#/">
          <span class="mark" aria-hidden="true" />
          {t.product}
        </a>
        <nav aria-label={t.navigation}>
          {views.map((view) => (
            <a
              key={view}
              href={view === "calendar" ? "#/" : href([view])}
              aria-current={first === view ? "page" : undefined}
            >
              {t.nav[view]}
            </a>
          ))}
        </nav>
        <div class="frame-tools">
          <label>
            <span class="visually-hidden">{t.zone.label}</span>
            <select value={zone} title={t.zone.label} onChange={(event) => setZone(event.currentTarget.value)}>
              {zones.map((name) => (
                <option key={name} value={name}>
                  {name === "UTC" ? name : t.zone.here(name)}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span class="visually-hidden">{t.theme.label}</span>
            <select
              value={theme}
              title={t.theme.label}
              onChange={(event) => props.setTheme(event.currentTarget.value as "system" | "light" | "dark")}
            >
              {(["system", "light", "dark"] as const).map((name) => (
                <option key={name} value={name}>
                  {t.theme[name]}
                </option>
              ))}
            </select>
          </label>
          <span class="who" title={session.roles.join(", ")}>
            <bdi>
              {t.signedInAs(
                (session.user_name ?? session.user).slice(0, 40),
                (session.project_name ?? session.project_id).slice(0, 40),
              )}
            </bdi>
          </span>
          {session.authentication !== "none" && (
            <button type="button" class="quiet" onClick={props.leave}>
              {t.signOut}
            </button>
          )}
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <View route={route} theme={theme} />
      </main>
    </ContextOf.Provider>
  );
}

function View({ route, theme }: { route: Route; theme: string }): JSX.Element {
  const [first, second] = route.parts;
  switch (first) {
    case undefined:
    case "calendar":
      return <CalendarView route={route} theme={theme} />;
    case "leases":
      if (second === "new") return <NewLease />;
      return second ? <LeaseView key={second} id={second} /> : <LeasesView route={route} />;
    case "fleet":
      return <FleetView route={route} />;
    case "instances":
      return <InstancesView route={route} />;
    case "placement":
      return <PlacementView route={route} />;
    case "usage":
      return <UsageView />;
    case "admin":
      return <AdminView />;
    default:
      return (
        <div class="page">
          <Empty title={t.page.missing}>
            <p>{t.page.missingHint}</p>
            <a href="#/">{t.nav.calendar}</a>
          </Empty>
        </div>
      );
  }
}

function NewLease(): JSX.Element {
  const [kept] = useState(keptDraft);
  const [draft, setDraft] = useState(() => {
    const fresh = emptyDraft(clock.now());
    // If the start has passed, use the default start and keep the duration.
    return kept && kept.start > clock.now()
      ? kept
      : kept
        ? { ...kept, start: fresh.start, end: fresh.start + (kept.end - kept.start) }
        : fresh;
  });
  const answer = useAnswer(draft);
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.form.title}</h1>
        {kept && (
          <span class="note">
            {t.form.restored}{" "}
            <button
              type="button"
              class="quiet"
              onClick={() => {
                keepDraft(null);
                setDraft(emptyDraft(clock.now()));
              }}
            >
              {t.form.clear}
            </button>
          </span>
        )}
      </header>
      <LeaseForm
        draft={draft}
        answer={answer}
        change={(next) => {
          keepDraft(next);
          setDraft(next);
        }}
        made={(lease) => {
          keepDraft(null);
          go(["leases", lease.id]);
        }}
      />
    </div>
  );
}
