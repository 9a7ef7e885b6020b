import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { DiscreetError, Round } from "../discreet.js";

const golden = JSON.parse(readFileSync(new URL("golden.json", import.meta.url)));
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const item = ({ integer, bytes, string }) =>
  integer !== undefined ? BigInt(integer) : bytes !== undefined ? Uint8Array.from(Buffer.from(bytes, "hex")) : string;

test("the same bytes as Python, from the same words", async () => {
  assert.ok(golden.length > 50);
  for (const { description, items, number, words, message } of golden) {
    const round = await Round.from(description);
    assert.equal(hex(round.encode(items.map(item), BigInt(number), { words })), message, `${description} ${number}`);
    assert.throws(() => round.encode(items.map(item), BigInt(number), { words: words.slice(0, -1) }), DiscreetError);
  }
});

const yesNo = { protocol: "HadamardResponse", round_id: "q", epsilon: 1, universe: { kind: "string", items: ["yes", "no"] }, parameters: {} };
const sketch = { protocol: "LocalSketch", round_id: "q", epsilon: 1, universe: { kind: "string" }, parameters: { columns: 2 } };

test("what cannot be sent is refused, and the item is not in the message", () => {
  const refused = [
    () => new Round({ ...yesNo, protocol: "MergedSketch" }),
    () => new Round({ ...yesNo, protocol: "toString" }),
    () => new Round({ ...yesNo, round_id: "" }),
    () => new Round({ ...yesNo, round_id: "\ud800" }),
    () => new Round({ ...yesNo, epsilon: "1" }),
    () => new Round({ ...yesNo, epsilon: 0 }),
    () => new Round({ ...yesNo, epsilon: Infinity }),
    () => new Round({ ...yesNo, universe: { kind: "float" } }),
    () => new Round({ ...yesNo, universe: { kind: "string", items: [] } }),
    () => new Round({ ...yesNo, universe: { kind: "string", items: ["a", "a"] } }),
    () => new Round({ ...yesNo, universe: { kind: "int64", first: 0, size: 2 ** 60 } }),
    () => new Round({ ...sketch, parameters: { columns: 0 } }),
    () => new Round(yesNo).encode("secret"),
    () => new Round(yesNo).encode(7),
    () => new Round(yesNo).encode([]),
    () => new Round(yesNo).encode("yes", -1),
    () => new Round(yesNo).encode("yes", 1.5),
    () => new Round(yesNo).encode("yes", 2n ** 63n),
    () => new Round(yesNo).encode(["yes", "no"], 2n ** 63n - 1n),
    () => new Round({ ...yesNo, parameters: { shuffled: 100 } }).encode("yes", 7),
    () => new Round({ ...yesNo, parameters: { shuffled: 100 } }).encode(["yes", "no"]),
    () => new Round(sketch).encode("secret \ud800"),
    () => new Round(sketch).encode("secret".repeat(1000)),
  ];
  for (const [place, attempt] of refused.entries())
    assert.throws(attempt, (error) => error instanceof DiscreetError && !error.message.includes("secret"), `attempt ${place}`);
});

test("numbers are random where none is given, and below 2**63", () => {
  const round = new Round(yesNo);
  const seen = new Set(Array.from({ length: 500 }, () => hex(round.encode("yes").subarray(20, 28))));
  assert.equal(seen.size, 500);
});

test("all randomness is that of crypto", () => {
  const [random, values] = [Math.random, crypto.getRandomValues];
  let asked = 0;
  Math.random = () => assert.fail("Math.random was asked");
  crypto.getRandomValues = (array) => {
    asked += array.length;
    return values.call(crypto, array);
  };
  try {
    for (const description of [yesNo, sketch, { ...yesNo, protocol: "LocalHashing" }]) {
      asked = 0;
      new Round(description).encode(description === sketch ? "a" : "yes", 1);
      assert.ok(asked > 0, description.protocol);
    }
  } finally {
    Math.random = random;
    crypto.getRandomValues = values;
  }
});

// Failure probability: 20,000 draws, six standard deviations on either side: below 1e-8.
test("a response is kept as often as it should be", () => {
  const round = new Round(yesNo);
  const told = (answer) => round.encode(answer, 5, { words: ["18446744073709551615"] }).at(-5); // the largest word keeps
  const runs = 20000;
  for (const answer of ["yes", "no"]) {
    let kept = 0;
    for (let i = 0; i < runs; i++) kept += round.encode(answer, 5).at(-5) === told(answer) ? 1 : 0;
    const p = Math.E / (Math.E + 1);
    assert.ok(Math.abs(kept - runs * p) < 6 * Math.sqrt(runs * p * (1 - p)), `${kept}`);
  }
});

test("a message says whether its words were recorded", () => {
  const round = new Round(yesNo);
  assert.equal(round.encode("yes", 1)[2], 1);
  assert.equal(round.encode("yes", 1, { words: [0] })[2], 0x81);
});
