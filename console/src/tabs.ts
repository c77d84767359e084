// All tabs of a browser share one session. Each tells the others who is signed in.

import { useEffect, useRef } from "preact/hooks";
import type { Session } from "./api/client";

/** A user and the project it acts for. */
export const identity = (session: Pick<Session, "user" | "project_id">): string =>
  JSON.stringify([session.user, session.project_id]);

const channel = new BroadcastChannel("allot.session");

/** Tells other tabs who is signed in; null after signing out. */
export const announce = (who: string | null): void => channel.postMessage(who);

export function useOtherTabs(heard: (who: string | null) => void): void {
  const current = useRef(heard);
  current.current = heard;
  useEffect(() => {
    const hear = (event: MessageEvent<string | null>): void => current.current(event.data);
    channel.addEventListener("message", hear);
    return () => channel.removeEventListener("message", hear);
  }, []);
}

/** Names nothing of a user in the address any more. */
export const clearAddress = (): void => history.replaceState(null, "", location.pathname);

/**
 * Loads the page again, so that nothing is left in memory: requests that it still meant to send would otherwise be made
 * as another user.
 */
export function restart(): void {
  clearAddress();
  location.reload();
}

// A page that comes back from the browser's history shows what its user saw then.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
