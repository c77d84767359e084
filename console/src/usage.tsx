// Reserved and used resources, and their cost.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, type Bodies, clock, get } from "./api/client";
import { DAY } from "./calendar/geometry";
import { day, parse, rfc3339 } from "./calendar/zone";
import { Empty, LoadState, Project } from "./parts";
import { useContextOf, useLoaded } from "./state";
import { t } from "./texts";

type Period = keyof typeof t.usage.periods;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

interface Figures {
  start: string;
  end: string;
  projects: Bodies["Usage"][];
  days: Bodies["Usage"][];
  billing: Bodies["BillingBody"] | null;
  preemptible: Bodies["PreemptibleUsage"] | null;
}

const start = (period: Period): string | undefined =>
  period === "month" ? undefined : rfc3339(clock.now() - (period === "week" ? 7 * DAY : DAY));

async function load(period: Period, signal: AbortSignal): Promise<Figures> {
  const query = { start: start(period) };
  const optional = <T,>(promise: Promise<T>): Promise<T | null> =>
    promise.catch((error: unknown) => {
      if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return null;
      throw error;
    });
  const [usage, days, billing, preemptible] = await Promise.all([
    get<Bodies["UsageBody"]>("/v1/usage", { ...query, group_by: "project" }, signal),
    get<Bodies["UsageBody"]>("/v1/usage", { ...query, group_by: "day" }, signal),
    optional(get<Bodies["BillingBody"]>("/v1/usage/billing", query, signal)),
    optional(get<Bodies["PreemptibleBody"]>("/v1/preemptible", query, signal)),
  ]);
  return {
    start: usage.start,
    end: usage.end,
    projects: usage.usage,
    days: days.usage,
    billing,
    preemptible: preemptible?.preemptible ?? null,
  };
}

export function UsageView(): JSX.Element {
  const { zone } = useContextOf();
  const [period, setPeriod] = useState<Period>("month");
  const loaded = useLoaded(`usage ${period}`, (signal) => load(period, signal));
  const figures = loaded.data;
  const columns = t.usage.columns;
  const costs = new Map<string, number>();
  for (const line of figures?.billing?.billing ?? [])
    costs.set(line.project_id, (costs.get(line.project_id) ?? 0) + Number(line.amount));
  const currency = figures?.billing?.currency ?? "";
  const rows = (figures?.projects ?? []).filter((row) => row.project_id);
  const sum = (pick: (row: Bodies["Usage"]) => number): string =>
    number.format(rows.reduce((total, row) => total + pick(row), 0));
  const days = (figures?.days ?? [])
    .map((row) => ({ at: parse(row.start), hours: row.reserved.host_hours }))
    .filter((row) => Number.isFinite(row.at));
  const most = Math.max(1, ...days.map((row) => row.hours));
  const cost = (value: number): string => value.toFixed(2);
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.usage.title}</h1>
      </header>
      <div class="toolbar">
        <label>
          {t.usage.period}{" "}
          <select value={period} onChange={(event) => setPeriod(event.currentTarget.value as Period)}>
            {(Object.keys(t.usage.periods) as Period[]).map((name) => (
              <option key={name} value={name}>
                {t.usage.periods[name]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <LoadState loaded={loaded} />
      {figures && rows.length === 0 && <Empty title={t.usage.none} />}
      {rows.length > 0 && (
        <table class="list figures">
          <thead>
            <tr>
              <th>{columns.project}</th>
              <th>{columns.leases}</th>
              <th>{columns.hosts}</th>
              <th>{columns.cores}</th>
              <th>{columns.used}</th>
              {figures?.billing && (
                <th>
                  {columns.cost}
                  {currency && `, ${currency}`}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.project_id}>
                <th scope="row" data-label={columns.project}>
                  <Project id={row.project_id ?? ""} />
                </th>
                <td data-label={columns.leases}>{row.leases_started}</td>
                <td data-label={columns.hosts}>{number.format(row.reserved.host_hours)}</td>
                <td data-label={columns.cores}>{number.format(row.reserved.core_hours)}</td>
                <td data-label={columns.used}>{number.format(row.used.core_hours)}</td>
                {figures?.billing && <td data-label={columns.cost}>{cost(costs.get(row.project_id ?? "") ?? 0)}</td>}
              </tr>
            ))}
          </tbody>
          {rows.length > 1 && (
            <tfoot>
              <tr>
                <th scope="row" data-label={columns.project}>
                  {t.usage.total}
                </th>
                <td data-label={columns.leases}>{sum((row) => row.leases_started)}</td>
                <td data-label={columns.hosts}>{sum((row) => row.reserved.host_hours)}</td>
                <td data-label={columns.cores}>{sum((row) => row.reserved.core_hours)}</td>
                <td data-label={columns.used}>{sum((row) => row.used.core_hours)}</td>
                {figures?.billing && (
                  <td data-label={columns.cost}>
                    {cost([...costs.values()].reduce((total, value) => total + value, 0))}
                  </td>
                )}
              </tr>
            </tfoot>
          )}
        </table>
      )}
      {days.length > 1 && (
        <section>
          <h2>{t.usage.daily}</h2>
          <ol class="bars">
            {days.map((row) => (
              <li key={row.at} title={t.usage.chart(number.format(row.hours), day(row.at, zone))}>
                <span class="value">{number.format(row.hours)}</span>
                <span class="bar" style={{ height: `${Math.max(1, (row.hours / most) * 120)}px` }} />
                <span>{day(row.at, "UTC").slice(4)}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      {figures?.preemptible && (
        <section>
          <h2>{t.usage.preemptible}</h2>
          <p>
            {t.usage.preemptibleText(
              figures.preemptible.begun,
              number.format(figures.preemptible.hours),
              figures.preemptible.preempted,
              number.format(figures.preemptible.hours_lost),
            )}
          </p>
        </section>
      )}
    </div>
  );
}
