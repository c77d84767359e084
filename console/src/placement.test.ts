import { describe, expect, it } from "vitest";
import { asked, type Balance, components, readCluster, words } from "./placement";

describe("questions about clusters", () => {
  it("a file is the text format, or the documents of a remote API", () => {
    expect(readCluster("g|u|preferred||\n")).toEqual({ text: "g|u|preferred||\n" });
    expect(readCluster(' {"groups": []}')).toEqual({ rapi: { groups: [] } });
    expect(() => readCluster("{")).toThrow();
  });

  it("what is typed becomes fields of the question, and what is empty none", () => {
    expect(words(" n1, n2  n3,")).toEqual(["n1", "n2", "n3"]);
    expect(asked("balance", { group: " g ", moves: "5", no_disk_moves: true })).toEqual({
      group: "g",
      moves: 5,
      disk_moves: false,
    });
    expect(asked("balance", { group: "", moves: "many", reboot: true })).toEqual({ moves: "many" });
    expect(asked("drain", { nodes: "n1,n2", reboot: true })).toEqual({ nodes: ["n1", "n2"], reboot: true });
    expect(asked("whatif", { lose: "n1", add_nodes: "2,1g,1g,1 1,2g,2g,2", rebalance: false })).toEqual({
      lose: ["n1"],
      add_nodes: ["2,1g,1g,1", "1,2g,2g,2"],
    });
    expect(asked("fit", { shape: "1g,1g,1", count: "0" })).toEqual({ shape: "1g,1g,1", count: 0 });
  });

  it("the score's components add up what the moves change", () => {
    const change = (component: string, weighted: number) => ({ component, before: 0, after: 0, weighted });
    const move = { instance: "i", action: "f", from: [], to: [] };
    const answer: Balance = {
      instances: 1,
      initial: { score: 3, components: { a: 2, b: 1 } },
      final: { score: 1, components: { a: 0.5, b: 1 } },
      moves: [
        { ...move, changes: [change("a", -1)] },
        { ...move, changes: [change("a", -1), change("b", 0.25)] },
      ],
    };
    expect(components(answer)).toEqual([
      { component: "a", before: 2, after: 0.5, weighted: -2 },
      { component: "b", before: 1, after: 1, weighted: 0.25 },
    ]);
    expect(components({ instances: 0, moves: [] })).toEqual([]);
  });
});
