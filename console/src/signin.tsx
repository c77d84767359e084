// Signing in: the service answers with a cookie that no script can read.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, session, type Session } from "./api/client";
import { Refusal } from "./parts";
import { usePreference } from "./state";
import { t } from "./texts";

/** The body of a login, as `POST /identity/v3/auth/tokens` takes it. */
export function passwordLogin(user: string, password: string, project: string, domain: string): unknown {
  const of = domain || "Default";
  return {
    auth: {
      identity: { methods: ["password"], password: { user: { name: user, password, domain: { name: of } } } },
      ...(project && { scope: { project: { name: project, domain: { name: of } } } }),
    },
  };
}

export function SignIn({ over, done }: { over: boolean; done: (session: Session) => void }): JSX.Element {
  const [method, setMethod] = usePreference<"password" | "token">("sign-in", "password");
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string => String(form.get(name) ?? "");
    setBusy(true);
    setFailure(null);
    try {
      const body = method === "token" ? { token: text("token").trim() } : passwordLogin(text("username"), text("password"), text("project"), text("domain"));
      await session.start(body);
      done((await session.read()).session);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error.status === 401 ? new ApiError(401, t.signIn.wrong) : error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="sign-in" id="content">
      <form onSubmit={(event) => void submit(event)}>
        <h1>{t.product}</h1>
        <h2>{t.signIn.title}</h2>
        <p>{over ? t.signIn.over : t.signIn.lead}</p>
        <fieldset>
          <legend class="visually-hidden">{t.signIn.method}</legend>
          <div class="choices">
            {(["password", "token"] as const).map((name) => (
              <label key={name}><input type="radio" name="method" checked={method === name} onChange={() => setMethod(name)} />{t.signIn[name]}</label>
            ))}
          </div>
        </fieldset>
        {method === "password" ? (
          <>
            <label class="field"><span>{t.signIn.user}</span><input name="username" required autocomplete="username" autocapitalize="none" spellcheck={false} /></label>
            <label class="field"><span>{t.signIn.passwordField}</span><input name="password" type="password" required autocomplete="current-password" /></label>
            <label class="field"><span>{t.signIn.project}</span><input name="project" autocomplete="off" /><small>{t.signIn.projectHint}</small></label>
          </>
        ) : (
          <label class="field"><span>{t.signIn.tokenField}</span><input name="token" type="password" required autocomplete="off" spellcheck={false} /></label>
        )}
        {failure && <Refusal error={failure} />}
        <button type="submit" class="primary" disabled={busy}>{t.signIn.submit}</button>
      </form>
    </main>
  );
}
