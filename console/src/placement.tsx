// Placement questions about a Ganeti cluster, or about the service's own fleet. A cluster is either configured by the
// operator or a file, which is sent with each question and never stored.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, get, request } from "./api/client";
import { gib, Refusal } from "./parts";
import { go, href, type Route } from "./route";
import { may, useContextOf, useLoaded } from "./state";
import { t } from "./texts";

const QUESTIONS = ["balance", "drain", "whatif", "fit"] as const;
type Question = (typeof QUESTIONS)[number];

/** The fields of a request that select the cluster. */
type Cluster = { cluster: string } | { fleet: true } | { text: string } | { rapi: unknown };

interface Move {
  instance: string;
  action: string;
  from: string[];
  to: string[];
  copied_mib?: number;
  score?: number;
  failing_n1?: number;
  not_evacuable?: number;
  changes?: Change[];
}
interface Change {
  component: string;
  before: number;
  after: number;
  weighted: number;
}
interface Health {
  score: number;
  failing_n1: string[];
  not_evacuable: string[];
}
interface Score {
  score: number;
  components: Record<string, number>;
}
export interface Balance {
  group?: string;
  nodes?: number;
  instances: number;
  initial?: Score;
  final?: Score;
  optimal_score?: number;
  moves: Move[];
}
interface Drain {
  possible: boolean;
  purpose: string;
  before: Health;
  after: Health;
  steps: Move[];
  stays: { instance: string; role: string; node: string; reason: string }[];
}
interface Shape {
  disk_mib: number;
  memory_mib: number;
  vcpus: number;
  disk_template: string;
}
interface State extends Health {
  online_nodes: number;
  instances: number;
  free_memory_mib: number;
  free_disk_mib: number;
  free_vcpus: number | null;
  room: { shape: Shape; count: number; exact: boolean }[];
  violations: unknown[];
}
interface Whatif {
  changes: string[];
  before: State;
  after: State;
  moves: Move[];
  score_changes: Change[];
}
interface Fit {
  possible: boolean;
  shape: Shape;
  wanted: number | null;
  count: number;
  exact: boolean;
  proven: boolean;
  places: { nodes: string[]; count: number }[];
  refused: string | null;
  remedies: { more: number; action: string; [field: string]: unknown }[];
}
interface Answers {
  balance?: Balance;
  drain?: Drain;
  whatif?: Whatif;
  fit?: Fit;
}

/** Reads Ganeti's text format, or a JSON object with a remote API's four documents. */
export function readCluster(text: string): Cluster {
  if (text.trimStart().startsWith("{")) return { rapi: JSON.parse(text) as unknown };
  return { text };
}

/** Splits names at commas and spaces. */
export const words = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

/** Splits specifications at spaces and semicolons, because they contain commas. */
const specs = (text: string): string[] => text.split(/[\s;]+/).filter(Boolean);

const fixed = (value: number): string => value.toFixed(4);
const signed = (value: number): string => (value > 0 ? `+${fixed(value)}` : fixed(value).replace("-", "−"));

/** Values of the menu of clusters. `NAMED` is a prefix. */
const [FLEET, NAMED] = ["fleet", "named "];
function chosen(cluster: Cluster | null): string {
  if (cluster && "fleet" in cluster) return FLEET;
  return cluster && "cluster" in cluster ? NAMED + cluster.cluster : "";
}

export function PlacementView({ route }: { route: Route }): JSX.Element {
  const { session } = useContextOf();
  const named = may(session, "placement:clusters");
  const clusters = useLoaded<{ clusters: string[] }>(named ? "clusters" : null, (signal) =>
    get("/v1/placement/clusters", {}, signal),
  );
  const ofFleet = may(session, "placement:fleet");
  const [other, setOther] = useState<Cluster | null>(null);
  // The address selects the fleet, so that questions about it can be shared as links.
  const cluster: Cluster | null = ofFleet && route.query.get("of") === FLEET ? { fleet: true } : other;
  const [source, setSource] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const question: Question = QUESTIONS.find((name) => name === route.parts[1]) ?? "balance";
  const names = clusters.data?.clusters ?? [];
  const choose = (next: Cluster | null, name: string): void => {
    setOther(next);
    setSource(name);
    go(["placement", question]);
  };
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    setWrong(null);
    try {
      choose(readCluster(await file.text()), file.name);
    } catch {
      setOther(null);
      setWrong(t.placement.wrongFile);
    }
  };
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.placement.title}</h1>
      </header>
      <p class="note">{t.placement.lead}</p>
      <div class="toolbar">
        {(ofFleet || names.length > 0) && (
          <label>
            {t.placement.named}{" "}
            <select
              value={chosen(cluster)}
              onChange={(event) => {
                const value = event.currentTarget.value;
                if (value === FLEET) go(["placement", question], { of: FLEET });
                else choose(value ? { cluster: value.slice(NAMED.length) } : null, value);
              }}
            >
              <option value="">{t.placement.none}</option>
              {ofFleet && <option value={FLEET}>{t.placement.fleet}</option>}
              {names.map((name) => (
                <option key={name} value={NAMED + name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          {ofFleet || names.length > 0 ? t.placement.orFile : t.placement.file}{" "}
          <input type="file" onChange={(event) => void read(event.currentTarget.files?.[0])} />
        </label>
      </div>
      {wrong && <p class="wrong">{wrong}</p>}
      <nav class="tabs" aria-label={t.placement.questions}>
        {QUESTIONS.map((name) => (
          <a
            key={name}
            href={href(["placement", name])}
            aria-current={name === question ? "page" : undefined}
            onClick={(event) => {
              event.preventDefault();
              go(["placement", name], { of: cluster && "fleet" in cluster ? FLEET : null });
            }}
          >
            {t.placement.names[name]}
          </a>
        ))}
      </nav>
      {cluster && "fleet" in cluster && <p class="note">{t.placement.fleetMeans}</p>}
      <Asking
        key={`${question} ${chosen(cluster)} ${source}`}
        question={question}
        cluster={cluster}
        given={{ nodes: route.query.get("nodes") ?? "" }}
      />
    </div>
  );
}

type Fields = Record<string, string | boolean>;

/** A question's form and its answer. */
function Asking({
  question,
  cluster,
  given,
}: {
  question: Question;
  cluster: Cluster | null;
  given: Fields;
}): JSX.Element {
  const [fields, setFields] = useState<Fields>(given);
  const [answer, setAnswer] = useState<Answers | null>(null);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const text = (name: string): string => String(fields[name] ?? "");
  const set = (name: string, value: string | boolean): void => setFields((before) => ({ ...before, [name]: value }));
  const ask = async (): Promise<void> => {
    if (!cluster) return;
    setBusy(true);
    setFailure(null);
    try {
      const body = { ...cluster, ...asked(question, fields) };
      setAnswer(await request<Answers>("POST", `/v1/placement/${question}`, { body }));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setAnswer(null);
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  const input = (name: keyof typeof t.placement.fields, hint = "", required = false): JSX.Element => (
    <label class="field">
      <span>{t.placement.fields[name]}</span>
      <input
        value={text(name)}
        name={name}
        required={required}
        spellcheck={false}
        onInput={(event) => set(name, event.currentTarget.value)}
      />
      {hint && <small>{hint}</small>}
    </label>
  );
  const check = (name: keyof typeof t.placement.fields): JSX.Element => (
    <label class="check">
      <input
        type="checkbox"
        checked={Boolean(fields[name])}
        onChange={(event) => set(name, event.currentTarget.checked)}
      />
      {t.placement.fields[name]}
    </label>
  );
  const hints = t.placement.hints;
  return (
    <>
      <form
        autocomplete="off"
        class="question"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <p class="note">{t.placement.about[question]}</p>
        <div class="row">
          {question === "balance" && (
            <>
              {input("group", hints.group)}
              {input("moves", hints.moves)}
            </>
          )}
          {question === "drain" && input("nodes", hints.nodes, true)}
          {question === "whatif" && (
            <>
              {input("lose", hints.nodes)}
              {input("add_nodes", hints.addNodes)}
              {input("remove_instances", hints.instances)}
              {input("add_instances", hints.addInstances)}
              {input("resize", hints.resize)}
            </>
          )}
          {question === "fit" && (
            <>
              {input("shape", hints.shape, true)}
              {input("count", hints.count)}
              {input("group", hints.group)}
            </>
          )}
        </div>
        <div class="choices">
          {question === "drain" && check("reboot")}
          {(question === "balance" || question === "drain") && check("no_disk_moves")}
          {question === "whatif" && check("rebalance")}
        </div>
        <button type="submit" class="primary" disabled={busy || !cluster}>
          {busy ? t.placement.computing : t.placement.run}
        </button>
        {!cluster && <span class="note"> {t.placement.noCluster}</span>}
      </form>
      <div aria-live="polite">
        {failure && <Refusal error={failure} />}
        {answer?.balance && <BalanceAnswer answer={answer.balance} />}
        {answer?.drain && <DrainAnswer answer={answer.drain} />}
        {answer?.whatif && <WhatifAnswer answer={answer.whatif} />}
        {answer?.fit && <FitAnswer answer={answer.fit} />}
      </div>
    </>
  );
}

/** Fields of the request. Empty fields of the form are omitted. */
export function asked(question: Question, fields: Fields): Record<string, unknown> {
  const text = (name: string): string => String(fields[name] ?? "").trim();
  const body: Record<string, unknown> = {};
  const put = (name: string, value: unknown, given: boolean): void => {
    if (given) body[name] = value;
  };
  const one = (name: string): void => put(name, text(name), text(name) !== "");
  const list = (name: string, split: (text: string) => string[]): void =>
    put(name, split(text(name)), split(text(name)).length > 0);
  // Invalid numbers are sent as text, and the service rejects them.
  const count = (name: string): void =>
    put(name, Number.isNaN(Number(text(name))) ? text(name) : Number(text(name)), text(name) !== "");
  switch (question) {
    case "balance":
      one("group");
      count("moves");
      break;
    case "drain":
      list("nodes", words);
      put("reboot", true, Boolean(fields.reboot));
      break;
    case "whatif":
      for (const name of ["lose", "remove_instances"]) list(name, words);
      for (const name of ["add_nodes", "add_instances", "resize"]) list(name, specs);
      put("rebalance", true, Boolean(fields.rebalance));
      break;
    case "fit":
      one("shape");
      count("count");
      one("group");
      break;
  }
  put("disk_moves", false, Boolean(fields.no_disk_moves) && (question === "balance" || question === "drain"));
  return body;
}

/** Longest common suffix of the names that starts with a dot. Tables omit it. */
function suffixOf(names: string[]): string {
  const [first] = names;
  if (first === undefined) return "";
  for (let at = first.indexOf("."); at >= 0; at = first.indexOf(".", at + 1)) {
    const end = first.slice(at);
    if (names.every((name) => name.endsWith(end) && name.length > end.length)) return end;
  }
  return "";
}

function Moves({ moves, columns }: { moves: Move[]; columns: "improves" | "health" | "plain" }): JSX.Element {
  const texts = t.placement.columns;
  const suffix = suffixOf(moves.flatMap((move) => [...move.from, ...move.to]));
  const nodes = (names: string[]): string =>
    names.map((name) => (suffix ? name.slice(0, -suffix.length) : name)).join(" : ");
  return (
    <table class="list">
      <thead>
        <tr>
          <th>{texts.number}</th>
          <th>{texts.instance}</th>
          <th>{texts.from}</th>
          <th>{texts.to}</th>
          <th>{texts.action}</th>
          {columns !== "plain" && <th class="number">{texts.score}</th>}
          {columns === "improves" && <th>{texts.improves}</th>}
          {columns === "health" && <th class="number">{texts.copied}</th>}
          {columns === "health" && <th class="number">{texts.failing}</th>}
        </tr>
      </thead>
      <tbody>
        {moves.map((move, at) => (
          <tr key={at}>
            <td data-label={texts.number}>{at + 1}</td>
            <td data-label={texts.instance}>
              <bdi class="name">{move.instance}</bdi>
            </td>
            <td data-label={texts.from}>{nodes(move.from)}</td>
            <td data-label={texts.to}>{nodes(move.to)}</td>
            <td data-label={texts.action}>
              <code>{move.action}</code>
            </td>
            {columns !== "plain" && (
              <td class="number" data-label={texts.score}>
                {fixed(move.score ?? 0)}
              </td>
            )}
            {columns === "improves" && (
              <td data-label={texts.improves}>
                <ul class="chips">
                  {(move.changes ?? [])
                    .filter((change) => change.weighted < -0.00005)
                    .sort((one, other) => one.weighted - other.weighted)
                    .slice(0, 3)
                    .map((change) => (
                      <li key={change.component}>
                        {change.component} {signed(change.weighted)}
                      </li>
                    ))}
                </ul>
              </td>
            )}
            {columns === "health" && (
              <td class="number" data-label={texts.copied}>
                {move.copied_mib ? gib(move.copied_mib) : "–"}
              </td>
            )}
            {columns === "health" && (
              <td class="number" data-label={texts.failing}>
                {move.failing_n1 ?? 0}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A table of figures before and after a change. The fourth column is the effect on the score. */
function Comparison({ rows }: { rows: [ComponentChildren, string, string, string?][] }): JSX.Element {
  const texts = t.placement.columns;
  const more = rows.some((row) => row[3] !== undefined);
  return (
    <table class="list figures">
      <thead>
        <tr>
          <th>
            <span class="visually-hidden">{texts.figure}</span>
          </th>
          <th>{texts.before}</th>
          <th>{texts.after}</th>
          {more && <th>{texts.ofScore}</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, before, after, of], at) => (
          <tr key={at}>
            <th scope="row" data-label={texts.figure}>
              {name}
            </th>
            <td data-label={texts.before}>{before}</td>
            <td data-label={texts.after}>{after}</td>
            {more && <td data-label={texts.ofScore}>{of ?? ""}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Each component of the score before and after all moves, and its effect on the score. */
export function components(answer: Balance): Change[] {
  const { initial, final } = answer;
  if (!initial || !final) return [];
  const weighted = new Map<string, number>();
  for (const move of answer.moves)
    for (const change of move.changes ?? [])
      weighted.set(change.component, (weighted.get(change.component) ?? 0) + change.weighted);
  return Object.entries(initial.components).map(([component, before]) => ({
    component,
    before,
    after: final.components[component] ?? before,
    weighted: weighted.get(component) ?? 0,
  }));
}

function BalanceAnswer({ answer }: { answer: Balance }): JSX.Element {
  const { initial, final } = answer;
  if (!initial || !final) return <p class="ok">{t.placement.empty}</p>;
  const rows = components(answer)
    .filter((change) => change.before !== 0 || change.after !== 0)
    .sort((one, other) => one.weighted - other.weighted);
  return (
    <>
      <h2>{t.placement.balanced(answer.moves.length, answer.group ?? "")}</h2>
      <p>
        {t.placement.scores(fixed(initial.score), fixed(final.score), fixed(answer.optimal_score ?? 0))}{" "}
        {answer.moves.length === 0 && t.placement.nothingToMove}
      </p>
      {answer.moves.length > 0 && <Moves moves={answer.moves} columns="improves" />}
      <h2>{t.placement.components}</h2>
      <Comparison
        rows={[
          ...rows.map((change): [ComponentChildren, string, string, string] => [
            <code key={change.component}>{change.component}</code>,
            fixed(change.before),
            fixed(change.after),
            change.weighted === 0 ? "–" : signed(change.weighted),
          ]),
          [
            <strong key="score">{t.placement.columns.score}</strong>,
            fixed(initial.score),
            fixed(final.score),
            final.score === initial.score ? "–" : signed(final.score - initial.score),
          ],
        ]}
      />
    </>
  );
}

function health(before: Health, after: Health): [ComponentChildren, string, string][] {
  const rows = t.placement.rows;
  return [
    [rows.score, fixed(before.score), fixed(after.score)],
    [rows.failing, String(before.failing_n1.length), String(after.failing_n1.length)],
    [rows.stuck, String(before.not_evacuable.length), String(after.not_evacuable.length)],
  ];
}

function DrainAnswer({ answer }: { answer: Drain }): JSX.Element {
  return (
    <>
      <h2 class={answer.possible ? "ok" : "attention"}>
        {answer.possible ? t.placement.drains(answer.steps.length) : t.placement.stays(answer.stays.length)}
      </h2>
      {answer.stays.length > 0 && (
        <ul>
          {answer.stays.map((stay, at) => (
            <li key={at}>
              <bdi class="name">{stay.instance}</bdi> ({stay.role}, {stay.node}): {stay.reason}
            </li>
          ))}
        </ul>
      )}
      {answer.steps.length > 0 && <Moves moves={answer.steps} columns="health" />}
      <h2>{t.placement.others}</h2>
      <Comparison rows={health(answer.before, answer.after)} />
      <p class="note">{t.placement.stuckMeans}</p>
    </>
  );
}

const shapeOf = (shape: Shape): string =>
  t.placement.shape(gib(shape.disk_mib), gib(shape.memory_mib), shape.vcpus, shape.disk_template);

function WhatifAnswer({ answer }: { answer: Whatif }): JSX.Element {
  const { before, after } = answer;
  const rows = t.placement.rows;
  const number = (value: number | null): string => (value === null ? t.placement.noLimit : String(value));
  const room = (state: State, at: number): string => {
    const one = state.room[at];
    return one ? `${one.count}${one.exact ? "" : "+"}` : "–";
  };
  return (
    <>
      <h2>{answer.changes.join(", ")}</h2>
      <Comparison
        rows={[
          ...health(before, after),
          [rows.online, String(before.online_nodes), String(after.online_nodes)],
          [rows.instances, String(before.instances), String(after.instances)],
          [rows.memory, gib(before.free_memory_mib), gib(after.free_memory_mib)],
          [rows.disk, gib(before.free_disk_mib), gib(after.free_disk_mib)],
          [rows.vcpus, number(before.free_vcpus), number(after.free_vcpus)],
          ...before.room.map((one, at): [ComponentChildren, string, string] => [
            rows.room(shapeOf(one.shape)),
            room(before, at),
            room(after, at),
          ]),
          [rows.violations, String(before.violations.length), String(after.violations.length)],
        ]}
      />
      {answer.score_changes.length > 0 && (
        <>
          <h2>{t.placement.scoreChanges}</h2>
          <Comparison
            rows={answer.score_changes.map((change): [ComponentChildren, string, string, string] => [
              <code key={change.component}>{change.component}</code>,
              fixed(change.before),
              fixed(change.after),
              signed(change.weighted),
            ])}
          />
        </>
      )}
      {answer.moves.length > 0 && (
        <>
          <h2>{t.placement.balancingTakes(answer.moves.length)}</h2>
          <Moves moves={answer.moves} columns="plain" />
        </>
      )}
    </>
  );
}

function FitAnswer({ answer }: { answer: Fit }): JSX.Element {
  return (
    <>
      <h2 class={answer.possible ? "ok" : "attention"}>
        {t.placement.fits(answer)} ({shapeOf(answer.shape)})
      </h2>
      {answer.places.length > 0 && (
        <ul class="chips">
          {answer.places.slice(0, 40).map((place) => (
            <li key={place.nodes.join()}>
              {place.count} × {place.nodes.join(" : ")}
            </li>
          ))}
        </ul>
      )}
      {answer.refused && (
        <>
          <h2>{t.placement.stops}</h2>
          <p>{answer.refused}</p>
          <h2>{t.placement.remedies}</h2>
          {answer.remedies.length === 0 && <p>{t.placement.noRemedy}</p>}
          <ul>
            {answer.remedies.map((remedy, at) => (
              <li key={at}>
                {t.placement.remedy(remedy.action, remedy)}: <strong>{t.placement.more(remedy.more)}</strong>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
