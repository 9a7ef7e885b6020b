// audited.mjs DESCRIPTION KIND COUNT: a file for `discreet audit --messages`, made by the client, or by a twin of it.
//
// KIND is "honest"; "law", for the exact law of one number, found by bisection of the first random word; or what the
// twin does: "coin" compares Math.random() with 0.7, "seeded" draws noise that follows from the number, "leaking" writes
// the answer into the number, "padded" into bits that nobody reads.
import { Round } from "../../clients/js/discreet.js";

const [description, kind, count] = process.argv.slice(2);
const round = await Round.from(description);
const items = JSON.parse(description).universe.items.slice(0, 2);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const WORDS = ["0", "18446744073709551615"]; // the one flips a bit, the other keeps it

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** A message that does not say that its words were recorded, with other bits set if wanted. */
function sealed(message, bits = 0) {
  const out = Uint8Array.from(message);
  out[2] &= 0x7f;
  out[out.length - 5] |= bits;
  new DataView(out.buffer).setUint32(out.length - 4, crc32(out.subarray(0, -4)), true);
  return out;
}

const anyNumber = () => crypto.getRandomValues(new BigUint64Array(1))[0] >> 2n;
const flipped = (item, number, keep) => sealed(round.encode(item, number, { words: [WORDS[keep ? 1 : 0]] }));
const twins = {
  honest: (item) => round.encode(item),
  fixed: (item) => round.encode(item, 5),
  coin: (item) => flipped(item, anyNumber(), Math.random() < 0.7),
  seeded: (item, place) => {
    const number = place % 2 ? 5n : anyNumber();
    return flipped(item, number, Number((number * 0x9e3779b97f4a7c15n) & 1023n) < 1024 * (1 / (1 + Math.exp(-round.epsilon))));
  },
  leaking: (item) => {
    const even = (anyNumber() >> 1n) << 1n;
    return round.encode(item, item === items[0] ? even : even + 1n);
  },
  padded: (item) => sealed(round.encode(item), item === items[0] ? 0 : 1),
};

/** The probability of each message, in units of 2^-64: the response is kept from some word on. */
function law(item, number) {
  const seen = (word) => {
    try {
      return hex(sealed(round.encode(item, number, { words: [word] })));
    } catch {
      return null; // this word alone does not decide
    }
  };
  const first = seen(0n);
  let [low, high] = [0n, (1n << 64n) - 1n];
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (seen(middle) === first) low = middle;
    else high = middle;
  }
  // Words are used by their upper 63 bits: the lowest one is for a sign that there is not.
  return { [first]: `${high}/${1n << 64n}`, [seen((1n << 64n) - 1n)]: `${(1n << 64n) - high}/${1n << 64n}` };
}

console.log(JSON.stringify({ round: JSON.parse(description), ...(kind === "fixed" ? {} : { numbers: "random" }) }));
for (const item of items) {
  if (kind === "law") for (let number = 0n; number < 8n; number++) console.log(JSON.stringify({ item, law: law(item, number) }));
  else console.log(JSON.stringify({ item, messages: Array.from({ length: Number(count) }, (_, i) => hex(twins[kind](item, i))) }));
}
