import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { DiscreetError, Round } from "../discreet.js";

const golden = JSON.parse(readFileSync(new URL("golden.json", import.meta.url)));
const utf8 = new TextEncoder();
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
    () => new Round({ ...yesNo, epsilon: 2e-19 }), // no choice would be likelier than another
    () => new Round({ ...yesNo, protocol: "LocalHashing", epsilon: 2e-19 }),
    () => new Round({ ...yesNo, universe: { kind: "float" } }),
    () => new Round({ ...yesNo, universe: undefined }),
    () => new Round({ ...yesNo, universe: { kind: "string", items: [] } }),
    () => new Round({ ...yesNo, universe: { kind: "string", items: ["a", "a"] } }),
    () => new Round({ ...yesNo, universe: { kind: "int64", first: 0, size: 2 ** 60 } }),
    () => new Round({ ...yesNo, universe: { kind: "int64", items: [1, 2 ** 60] } }),
    () => new Round({ ...yesNo, universe: { kind: "int64", items: [1, 1n] } }),
    () => new Round({ ...sketch, parameters: { columns: 0 } }),
    () => new Round({ ...sketch, parameters: { columns: 1.5 } }),
    () => new Round({ ...sketch, parameters: { columns: 2 ** 20 + 1 } }),
    () => new Round({ ...sketch, parameters: {} }),
    () => new Round({ ...sketch, epsilon: 1e-9 }), // cells of 32 bits could not hold the noise
    () => new Round({ ...sketch, parameters: { columns: 2 ** 20 } }).encode(Array(65).fill("a")),
    () => new Round({ ...yesNo, round_id: "é".repeat(512) + "a" }),
    () => new Round({ ...yesNo, round_id: 7 }),
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
    () => new Round(sketch).encode("\udc00 secret"),
    () => new Round(sketch).encode(utf8.encode("secret")),
    () => new Round({ ...sketch, universe: { kind: "binary" } }).encode("secret"),
    () => new Round({ ...sketch, universe: { kind: "int64" } }).encode("secret"),
    () => new Round({ ...sketch, universe: { kind: "int64" } }).encode(2 ** 53),
    () => new Round(sketch).encode("secret".repeat(1000)),
  ];
  for (const [place, attempt] of refused.entries())
    assert.throws(attempt, (error) => error instanceof DiscreetError && error.name === "DiscreetError" && !error.message.includes("secret"), `attempt ${place}`);
});

test("what is at a limit can be sent", () => {
  assert.doesNotThrow(() => new Round({ ...yesNo, round_id: "é".repeat(512) }).encode("yes"));
  assert.doesNotThrow(() => new Round({ ...yesNo, epsilon: 1e-18 }).encode("yes"));
  assert.doesNotThrow(() => new Round({ ...sketch, parameters: { columns: 2 ** 20 } }));
  assert.doesNotThrow(() => new Round({ ...sketch, universe: { kind: "int64" } }).encode(2 ** 53 - 1));
  assert.doesNotThrow(() => new Round(sketch).encode("🌍"));
  assert.doesNotThrow(() => new Round(yesNo).encode(["yes", "no"], 2n ** 63n - 2n));
});

test("a round is the same from its text and parsed, and says what it reveals", async () => {
  for (const { description, items, number, words, message } of golden.slice(0, 3))
    assert.equal(hex((await Round.from(JSON.parse(description))).encode(items.map(item), BigInt(number), { words })), message);
  const round = new Round({ ...yesNo, epsilon: 2, parameters: { shuffled: 100 } });
  assert.deepEqual([round.protocol, round.roundId, round.epsilon, round.shuffled], ["HadamardResponse", "q", 2, 100]);
  assert.equal(round.odds, Math.exp(2));
  assert.equal(new Round(yesNo).shuffled, null);
});

test("a shuffled round tells no number, and draws it as others do", () => {
  const round = new Round({ ...yesNo, parameters: { shuffled: 100 } });
  for (const reports of ["yes", ["no"]]) assert.equal(hex(round.encode(reports).subarray(0, 2)), "646d");
  assert.throws(() => round.encode("yes", 0), DiscreetError);
});

test("recorded words stay as they were", () => {
  const words = [1, "2", 3n];
  const told = Array.from({ length: 2 }, () => hex(new Round(yesNo).encode("yes", 1, { words })));
  assert.equal(told[0], told[1]);
  assert.equal(words.length, 3);
});

test("numbers are random where none is given, and below 2**63", () => {
  const round = new Round(yesNo);
  const seen = new Set(Array.from({ length: 500 }, () => hex(round.encode("yes").subarray(20, 28))));
  assert.equal(seen.size, 500);
});

test("random numbers have 62 bits, as those of Python", () => {
  const round = new Round(yesNo);
  const seen = Array.from({ length: 400 }, () => {
    const bytes = round.encode("yes").subarray(20);
    const end = bytes.findIndex((byte) => byte < 128);
    return bytes.subarray(0, end + 1).reduceRight((sum, byte) => (sum << 7n) | BigInt(byte & 127), 0n);
  });
  assert.ok(seen.every((number) => number < 1n << 62n));
  for (let bit = 0n; bit < 62n; bit++) assert.ok(new Set(seen.map((number) => (number >> bit) & 1n)).size === 2, `bit ${bit}`); // 2^-393 each
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

test("a range ends where it was said, on both sides", () => {
  const round = new Round({ ...yesNo, universe: { kind: "int64", first: -5, size: 10 } });
  for (const inside of [-5, -1, 0, 4, 4n]) assert.equal(hex(round.encode(inside, 1).subarray(0, 2)), "646d");
  for (const outside of [-6, 5, 5n, 2 ** 53 - 1, -(2n ** 63n), 2n ** 64n - 5n]) assert.throws(() => round.encode(outside, 1), DiscreetError);
  const one = new Round({ ...yesNo, universe: { kind: "int64", first: 7, size: 1 } });
  assert.doesNotThrow(() => one.encode(7, 1));
  for (const outside of [6, 8]) assert.throws(() => one.encode(outside, 1), DiscreetError);
  const any = new Round({ ...yesNo, universe: { kind: "int64" } });
  for (const inside of [-(2n ** 63n), 2n ** 63n - 1n]) assert.doesNotThrow(() => any.encode(inside, 1));
  for (const outside of [-(2n ** 63n) - 1n, 2n ** 63n]) assert.throws(() => any.encode(outside, 1), DiscreetError);
});

test("an item of 4096 bytes is the longest", () => {
  const [texts, bytes] = ["string", "binary"].map((kind) => new Round({ ...yesNo, universe: { kind } }));
  assert.doesNotThrow(() => texts.encode("é".repeat(2048), 1));
  assert.throws(() => texts.encode("é".repeat(2048) + "a", 1), DiscreetError);
  assert.doesNotThrow(() => bytes.encode(new Uint8Array(4096), 1));
  assert.throws(() => bytes.encode(new Uint8Array(4097), 1), DiscreetError);
});

test("numbers take as few bytes as they can, seven bits in each", () => {
  const round = new Round(yesNo);
  const written = { 0: "00", 127: "7f", 128: "8001", 129: "8101", 16383: "ff7f", 16384: "808001", "9223372036854775807": "ffffffffffffffff7f" };
  for (const [number, bytes] of Object.entries(written)) {
    const message = round.encode("yes", BigInt(number));
    assert.equal(hex(message.subarray(20, 20 + bytes.length / 2)), bytes, number);
    assert.equal(message.length, 20 + bytes.length / 2 + 2 + 1 + 4, number); // how many items, further runs, a bit, the sum
  }
  const many = round.encode(Array(128).fill("yes"), 1);
  assert.equal(hex(many.subarray(21, 24)), "800100");
});
