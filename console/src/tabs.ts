// All tabs of a browser share one session. Each tab tells the others which user is signed in.

import { useEffect, useRef } from "preact/hooks";
import type { Session } from "./api/client";

/** Identifies a user and the project it acts for. */
export const identity = (session: Pick<Session, "user" | "project_id">): string =>
  JSON.stringify([session.user, session.project_id]);

const channel = new BroadcastChannel("allot.session");

/** Tells other tabs which user is signed in; null after signing out. */
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

/** Removes query and fragment from the address, which can name objects of a user. */
export const clearAddress = (): void => history.replaceState(null, "", location.pathname);

/**
 * Reloads the page to clear its memory. Otherwise, requests that it hasn't sent yet would be made as another user.
 */
export function restart(): void {
  clearAddress();
  location.reload();
}

// A page restored from the browser's history still shows the data of its earlier user.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
