// The sign-in form. The service answers with an HttpOnly cookie.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, session, type Session } from "./api/client";
import { Refusal } from "./parts";
import { usePreference } from "./state";
import { t } from "./texts";

export function SignIn({
  over,
  logins,
  done,
}: {
  over: boolean;
  logins: string[];
  done: (session: Session) => void;
}): JSX.Element {
  const [preferred, setMethod] = usePreference<"password" | "token">("sign-in", "password");
  const methods = (["password", "token"] as const).filter((name) => logins.length === 0 || logins.includes(name));
  const method = methods.includes(preferred) ? preferred : (methods[0] ?? "password");
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string => String(form.get(name) ?? "");
    setBusy(true);
    setFailure(null);
    try {
      const body =
        method === "token"
          ? { token: text("token").trim() }
          : {
              user: text("username"),
              password: text("password"),
              ...(text("project") && { project: text("project") }),
            };
      await session.start(body);
      done((await session.read()).session);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error.status === 401 ? new ApiError(401, t.signIn.wrong[method]) : error);
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
        {methods.length > 1 && (
          <fieldset>
            <legend class="visually-hidden">{t.signIn.method}</legend>
            <div class="choices">
              {methods.map((name) => (
                <label key={name}>
                  <input type="radio" name="method" checked={method === name} onChange={() => setMethod(name)} />
                  {t.signIn[name]}
                </label>
              ))}
            </div>
          </fieldset>
        )}
        {method === "password" ? (
          <>
            <label class="field">
              <span>{t.signIn.user}</span>
              <input name="username" required autocomplete="username" autocapitalize="none" spellcheck={false} />
            </label>
            <label class="field">
              <span>{t.signIn.passwordField}</span>
              <input name="password" type="password" required autocomplete="current-password" />
            </label>
            <label class="field">
              <span>{t.signIn.project}</span>
              <input name="project" autocomplete="off" />
              <small>{t.signIn.projectHint}</small>
            </label>
          </>
        ) : (
          <label class="field">
            <span>{t.signIn.tokenField}</span>
            <input name="token" type="password" required autocomplete="off" spellcheck={false} />
          </label>
        )}
        {failure && <Refusal error={failure} />}
        <button type="submit" class="primary" disabled={busy}>
          {t.signIn.submit}
        </button>
      </form>
    </main>
  );
}
