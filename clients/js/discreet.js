// Answers that are randomised before they leave the page: the local protocols of discreet.multiparty.
//
//   const round = await Round.from(await (await fetch("round.json")).text());
//   await fetch("/v1/streams/survey/messages", { method: "POST", body: round.encode("yes") });
//
// Nothing here is approximate. Every probability is a rational number or the exponential of one, and a random real is
// compared with it by as many of its bits as that takes, on integers (BigInt). The random words come from the platform's
// cryptographic source. The bytes are those of the Python package, word for word. See docs/browser.md.

const ONE64 = 1n << 64n;
const MASK64 = ONE64 - 1n;
const PRIME61 = (1n << 61n) - 1n;
const MOST_NUMBER = (1n << 63n) - 1n;
const MOST_KEY_BYTES = 4096;
const MOST_CELLS = 2 ** 26;
const utf8 = new TextEncoder();

/** Something that cannot be sent: a wrong description, an item outside the universe. Never says which item. */
export class DiscreetError extends Error {
  constructor(text) {
    super(text);
    this.name = "DiscreetError";
  }
}

function refuse(text) {
  throw new DiscreetError(text);
}

// ---- bytes ---------------------------------------------------------------------------------------------------------

const littleEndian = (value, size) => Uint8Array.from({ length: size }, (_, i) => Number((value >> BigInt(8 * i)) & 255n));
const fromLittleEndian = (bytes) => bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

function joined(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function varint(value) {
  const out = [];
  for (; value >= 0x80n; value >>= 7n) out.push(Number(value & 0x7fn) | 0x80);
  return Uint8Array.from([...out, Number(value)]);
}

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

// BLAKE2b (RFC 7693) with a person, for less than 128 KiB: the digests and the public randomness of a round.
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => [...row].map((digit) => parseInt(digit, 16)));
const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const QUARTERS = ["048c", "159d", "26ae", "37bf", "05af", "16bc", "278d", "349e"].map((row) => [...row].map((digit) => parseInt(digit, 16)));

function blake2b(data, size, person = "") {
  const parameters = new Uint8Array(64);
  parameters.set([size, 0, 1, 1]);
  parameters.set(utf8.encode(person), 48);
  const h = IV.map((word, i) => word ^ fromLittleEndian(parameters.subarray(8 * i, 8 * i + 8)));
  const turned = (x, bits) => (x >> bits) | ((x << (64n - bits)) & MASK64);
  const blocks = Math.max(1, Math.ceil(data.length / 128));
  const padded = new Uint8Array(128 * blocks);
  padded.set(data);
  for (let block = 0; block < blocks; block++) {
    const m = Array.from({ length: 16 }, (_, i) => fromLittleEndian(padded.subarray(128 * block + 8 * i, 128 * block + 8 * i + 8)));
    const v = [...h, ...IV];
    const last = block === blocks - 1;
    v[12] ^= BigInt(last ? data.length : 128 * (block + 1));
    if (last) v[14] ^= MASK64;
    for (let round = 0; round < 12; round++) {
      QUARTERS.forEach(([a, b, c, d], i) => {
        const [x, y] = [m[SIGMA[round % 10][2 * i]], m[SIGMA[round % 10][2 * i + 1]]];
        v[a] = (v[a] + v[b] + x) & MASK64;
        v[d] = turned(v[d] ^ v[a], 32n);
        v[c] = (v[c] + v[d]) & MASK64;
        v[b] = turned(v[b] ^ v[c], 24n);
        v[a] = (v[a] + v[b] + y) & MASK64;
        v[d] = turned(v[d] ^ v[a], 16n);
        v[c] = (v[c] + v[d]) & MASK64;
        v[b] = turned(v[b] ^ v[c], 63n);
      });
    }
    for (let i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
  }
  return joined(h.map((word) => littleEndian(word, 8))).subarray(0, size);
}

// ---- exact numbers ---------------------------------------------------------------------------------------------------

const ceilDiv = (a, b) => (a + b - 1n) / b; // of positive numbers
const bitLength = (x) => (x === 0n ? 0 : x.toString(2).length);

/** The rational number [numerator, denominator] that a double is. */
function fraction(value) {
  let [numerator, denominator] = [value, 1n];
  while (!Number.isInteger(numerator)) [numerator, denominator] = [numerator * 2, denominator * 2n];
  return [BigInt(numerator), denominator];
}

/** Integers low <= 2^bits exp(-n/d) <= high, a few units apart. */
function expMinus([n, d], bits) {
  if (n / d >= bits) return [0n, 1n];
  const halvings = 8n + BigInt(bitLength(n / d));
  const work = bits + 2n * halvings + 16n;
  const y = (n << (work - halvings)) / d;
  let [total, term, count] = [1n << work, 1n << work, 0n];
  while (term) {
    count += 1n;
    term = ((term * y) >> work) / count;
    total += count % 2n === 0n ? term : -term;
  }
  let [low, high] = [total - 4n * (count + 2n), total + 4n * (count + 2n)];
  if (high > 1n << work) high = 1n << work;
  for (let i = 0n; i < halvings; i++) [low, high] = [(low * low) >> work, ((high * high) >> work) + 1n];
  const top = (high >> (work - bits)) + 1n;
  return [low >> (work - bits), top < 1n << bits ? top : 1n << bits];
}

const times = (a, b, bits) => [(a[0] * b[0]) >> bits, -((-a[1] * b[1]) >> bits)];

/** e^eps / (e^eps + k - 1) in units of 2^-64, where every other choice was rounded up. */
function keepUnits(choices, epsilon) {
  const [, q] = expMinus(epsilon, 192n);
  const k = BigInt(choices - 1);
  const other = ceilDiv(ONE64 * q, (1n << 192n) + q * k);
  const keep = ONE64 - k * other;
  if (keep <= other) refuse("epsilon is too small, or there are too many choices, to compute a response; raise epsilon");
  return keep;
}

// ---- exact draws -----------------------------------------------------------------------------------------------------

/** 64-bit words of the platform's random source; or recorded ones, for tests, which make the message say so. */
class Words {
  constructor(recorded) {
    this.recorded = recorded && [...recorded];
    this.seeded = Boolean(recorded);
  }
  next() {
    if (!this.recorded) return crypto.getRandomValues(new BigUint64Array(1))[0];
    return this.recorded.length ? BigInt(this.recorded.shift()) : refuse("no words are left to replay");
  }
  /** Up to 64 bits. */
  bits(count) {
    const bytes = (count + 7n) / 8n;
    return (this.next() & ((1n << (8n * bytes)) - 1n)) >> (8n * bytes - count);
  }
  /** Uniform in [0, high): multiply and reject. */
  below(high) {
    let product = this.next() * high;
    const floor = (ONE64 - high) % high;
    while ((product & MASK64) < floor) product = this.next() * high;
    return product >> 64n;
  }
}

// A law on the integers: +-(block 2^blockBits + offset). The block is drawn by inversion of P[block <= h], which
// `cumulative(bits)` encloses; the offset is uniform and accepted with probability exp(-slope offset/2^blockBits).
class Law {
  constructor(cumulative, sign = "none", blockBits = 0n, slope = [0n, 1n]) {
    Object.assign(this, { cumulative, sign, blockBits, slope, tables: new Map() });
    this.bounds = this.table(63n);
  }

  /** floor(2^bits P[block <= h]) + 1 for h = 0, 1, ... until every word is covered. */
  table(bits) {
    if (!this.tables.has(bits)) this.tables.set(bits, this.#made(bits));
    return this.tables.get(bits);
  }
  #made(bits) {
    for (let precision = bits + 64n; ; precision *= 2n) {
      const shift = precision - bits;
      const bounds = [];
      for (const [low, high] of this.cumulative(precision)) {
        const bound = (low >> shift) + 1n;
        if (high > (bound + 1n) << shift) break;
        bounds.push(bound);
        if (bound >= (1n << bits) - 1n) return bounds;
      }
    }
  }

  /** Draws one after the other; those that their words do not decide are continued when all others are there. */
  draw(words, size) {
    const pending = [];
    const out = [];
    for (let i = 0; i < size; i++) {
      let drawn;
      while ((drawn = this.#one(words)) === null);
      if (typeof drawn === "object") pending.push([i, drawn]);
      out.push(drawn);
    }
    for (const [i, state] of pending) out[i] = this.#settled(words, state);
    return out;
  }

  #one(words) {
    const random = words.next();
    const negative = this.sign !== "none" && (random & 1n) === 1n;
    const word = random >> 1n;
    const block = first(this.bounds, word);
    if (word + 1n >= this.bounds[block]) return { negative, known: false, bits: 63n, word };
    let magnitude = BigInt(block);
    if (this.blockBits) {
      let fresh = words.next();
      const offset = fresh & ((1n << this.blockBits) - 1n);
      const oneWord = this.blockBits <= 20n;
      if (!oneWord) fresh = words.next();
      const bits = oneWord && 64n - this.blockBits < 62n ? 64n - this.blockBits : 62n;
      const uniform = fresh >> (64n - bits);
      magnitude = (BigInt(block) << this.blockBits) + offset;
      if (magnitude === 0n && negative && this.sign === "unfolded") return null;
      const verdict = this.#accepted(offset, uniform, bits);
      if (verdict === "no") return null;
      if (verdict === "unknown") return { negative, known: true, bits, word: uniform, block: BigInt(block), offset };
    }
    return negative ? -magnitude : magnitude;
  }

  /** Is U < exp(-x), for U of which the first bits are known? By partial sums that alternate around it. */
  #accepted(offset, uniform, bits) {
    const one = 1n << 62n;
    const x = (((this.slope[0] << 62n) / this.slope[1]) * offset) >> this.blockBits;
    const [low, high] = [uniform << (62n - bits), (uniform + 1n) << (62n - bits)];
    let [sum, term] = [one, one];
    for (let k = 1n; k <= 16n; k++) {
      term = ((term * x) >> 62n) / k;
      if (k % 2n === 1n) {
        sum -= term;
        if (high + 128n <= sum) return "yes";
      } else {
        sum += term;
        if (low >= sum + 128n) return "no";
      }
    }
    return "unknown";
  }

  #settled(words, { negative, known, bits, word, block, offset }) {
    for (;;) {
      if (!known) {
        block = this.#inverted(words, word, bits);
        offset = this.blockBits ? words.bits(this.blockBits) : 0n;
        word = bits = 0n;
      }
      const magnitude = (block << this.blockBits) + offset;
      const x = [this.slope[0] * offset, this.slope[1] << this.blockBits];
      const twice = this.sign === "unfolded" && negative && magnitude === 0n;
      if (!twice && (x[0] === 0n || isBelow(x, words, word, bits))) return negative ? -magnitude : magnitude;
      negative = this.sign !== "none" && words.bits(1n) === 1n;
      [known, word, bits] = [false, 0n, 0n];
    }
  }

  #inverted(words, word, bits) {
    for (;;) {
      [word, bits] = [(word << 64n) | words.next(), bits + 64n];
      const bounds = this.table(bits);
      const h = first(bounds, word);
      if (word < bounds[h] - 1n) return BigInt(h);
    }
  }
}

/** The first place whose bound is not below the word. */
function first(bounds, word) {
  let [low, high] = [0, bounds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bounds[middle] < word) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether U < exp(-x), for a uniform U whose first bits are the word. */
function isBelow(x, words, word, bits) {
  for (;;) {
    [word, bits] = [(word << 64n) | words.next(), bits + 64n];
    const [low, high] = expMinus(x, bits + 64n);
    if ((word + 1n) << 64n <= low) return true;
    if (word << 64n >= high) return false;
  }
}

/** 1 with probability units / 2^64, else 0. */
const bernoulliLaw = (units) =>
  new Law(function* (bits) {
    const [one, scaled] = [1n << bits, units << bits];
    yield [one - ceilDiv(scaled, ONE64), one - scaled / ONE64];
    yield [one, one];
  });

/** P[z] = (1 - q)/(1 + q) q^|z| with q = exp(-1/scale). */
function laplaceLaw([n, d]) {
  const blockBits = BigInt(Math.max(0, bitLength(n / (8n * d)) - 1));
  const x = [d << blockBits, n];
  if (blockBits) {
    const geometric = function* (bits) {
      const ratio = expMinus(x, bits);
      for (let power = ratio; ; power = times(power, ratio, bits)) yield [(1n << bits) - power[1], (1n << bits) - power[0]];
    };
    return new Law(geometric, "unfolded", blockBits, x);
  }
  return new Law(function* (bits) {
    const [one, ratio] = [1n << bits, expMinus(x, bits)];
    const factor = [(2n << (2n * bits)) / (one + ratio[1]), ceilDiv(2n << (2n * bits), one + ratio[0])];
    for (let tail = times(ratio, factor, bits); ; tail = times(tail, ratio, bits)) yield [one - tail[1], one - tail[0]];
  }, "folded");
}

// ---- the reports' public functions -------------------------------------------------------------------------------------

/** Philox4x64-10 at a report's number: both sides compute it. */
function philox([k0, k1], number) {
  let c = [number, 0n, 0n, 0n];
  for (let round = 0; round < 10; round++) {
    const [p0, p1] = [0xd2e7470ee14c6c93n * c[0], 0xca5a826395121157n * c[2]];
    c = [(p1 >> 64n) ^ c[1] ^ k0, p1 & MASK64, (p0 >> 64n) ^ c[3] ^ k1, p0 & MASK64];
    [k0, k1] = [(k0 + 0x9e3779b97f4a7c15n) & MASK64, (k1 + 0xbb67ae8584caa73bn) & MASK64];
  }
  return c;
}

/** A strongly universal function of words, at one word: 32 bits. */
function hash(key, number, word) {
  const [a0, a1, b] = philox(key, number);
  return ((((a0 + (word >> 32n)) * (a1 + (word & 0xffffffffn)) + b) & MASK64) >> 32n) & 0xffffffffn;
}

const bucketOf = (hashed, buckets) => (hashed * BigInt(buckets)) >> 32n;

// ---- items -------------------------------------------------------------------------------------------------------------

const wellFormed = (text) => !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);

/** A whole number as a BigInt; a double must be one that stands for no other. */
function whole(value, what) {
  if (typeof value === "bigint") return value;
  return Number.isSafeInteger(value) ? BigInt(value) : refuse(`${what} must be a whole number of at most 53 bits, or a BigInt`);
}

function bytesOf(item, kind) {
  const fits = kind === "string" ? typeof item === "string" && wellFormed(item) : item instanceof Uint8Array;
  if (!fits) refuse(`the items of this round are ${kind === "string" ? "strings (Unicode)" : "Uint8Arrays"}`);
  const bytes = kind === "string" ? utf8.encode(item) : item;
  return bytes.length <= MOST_KEY_BYTES ? bytes : refuse(`an item has at most ${MOST_KEY_BYTES} bytes`);
}

const POINT = (fromLittleEndian(blake2b(utf8.encode("discreet multiparty fingerprint"), 8)) >> 3n) % PRIME61;

/** The word of a text: a polynomial over the field of 2^61 - 1 at a public point, its length the leading coefficient. */
function fingerprint(bytes) {
  let [sum, at] = [BigInt(bytes.length), 0];
  for (; bytes.length - at >= 8; at += 7) sum = (sum * POINT + fromLittleEndian(bytes.subarray(at, at + 7))) % PRIME61;
  return at < bytes.length ? (sum * POINT + lastBytes(bytes.subarray(at))) % PRIME61 : sum;
}

function lastBytes(bytes) {
  const n = bytes.length;
  if (n >= 4) return fromLittleEndian(bytes.subarray(0, 4)) | (fromLittleEndian(bytes.subarray(n - 4)) << BigInt(8 * (n - 4)));
  return fromLittleEndian(Uint8Array.from([bytes[0], bytes[n >> 1], bytes[n - 1]]));
}

class Universe {
  constructor(described) {
    const { kind, items, first: start, size } = described ?? {};
    if (!["int64", "string", "binary"].includes(kind)) refuse("the description has a universe of an unknown kind");
    this.kind = kind;
    if (items !== undefined) {
      if (!Array.isArray(items) || !items.length) refuse("the description has an empty universe");
      this.places = new Map(items.map((item, place) => [kind === "int64" ? whole(item, "an item") : item, BigInt(place)]));
      if (this.places.size !== items.length) refuse("the description lists an item twice");
      this.size = BigInt(items.length);
    } else if (size !== undefined) {
      [this.first, this.size] = [whole(start, "first"), whole(size, "size")];
    }
    this.wordBits = this.size !== undefined ? bitLength(this.size - 1n) : kind === "int64" ? 64 : 61;
  }

  /** The word of an item: its place, its 64 bits, or its fingerprint. */
  word(item) {
    const place = this.#place(item);
    return place !== undefined ? place : refuse("an item is outside the universe");
  }

  #place(item) {
    if (this.kind === "int64") {
      const value = whole(item, "an item");
      if (this.places) return this.places.get(value);
      if (this.size !== undefined) return value >= this.first && value < this.first + this.size ? value - this.first : undefined;
      return BigInt.asIntN(64, value) === value ? BigInt.asUintN(64, value) : undefined;
    }
    const bytes = bytesOf(item, this.kind);
    if (!this.places) return fingerprint(bytes);
    return this.places.get(this.kind === "string" ? item : Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join(""));
  }
}

// ---- what a message says ---------------------------------------------------------------------------------------------------

class BitWriter {
  constructor() {
    this.digits = [];
  }
  bits(value, count) {
    for (let i = count - 1; i >= 0; i--) this.digits.push(Number((value >> BigInt(i)) & 1n));
  }
  rice(value, k) {
    const quotient = value >> BigInt(k);
    if (quotient >= 48n) {
      this.bits((1n << 48n) - 1n, 48);
      return this.bits(value, 64);
    }
    for (let i = 0n; i < quotient; i++) this.digits.push(1);
    this.digits.push(0);
    this.bits(value, k);
  }
  take() {
    const out = new Uint8Array(Math.ceil(this.digits.length / 8));
    this.digits.forEach((digit, i) => (out[i >> 3] |= digit << (7 - (i & 7))));
    return out;
  }
}

/** The Rice parameter that makes these numbers shortest, and how long they are. */
function bestRice(values) {
  let best = [0, Infinity];
  for (let k = 0, worse = 0; k <= 48 && worse < 3; k++) {
    const length = values.reduce((sum, value) => {
      const quotient = value >> BigInt(k);
      return sum + (quotient >= 48n ? 112 : Number(quotient) + 1 + k);
    }, 0);
    if (length < best[1]) [best, worse] = [[k, length], 0];
    else worse += 1;
  }
  return best;
}

/** Small signed integers in few bits: all of them, or where most are zero the gaps before the others and their values. */
function writeIntegers(values) {
  const all = values.map((value) => (value < 0n ? -2n * value - 1n : 2n * value));
  const [gaps, others] = [[], []];
  let gap = 0n;
  all.forEach((value) => {
    if (value === 0n) return void (gap += 1n);
    gaps.push(gap);
    others.push(value - 1n);
    gap = 0n;
  });
  const [dense, at, value] = [bestRice(all), bestRice(gaps), bestRice(others)];
  const digits = Math.max(1, bitLength(BigInt(gaps.length)));
  const sparse = at[1] + value[1] + 12 + digits < dense[1];
  const out = new BitWriter();
  out.bits(sparse ? 1n : 0n, 1);
  out.bits(BigInt(sparse ? at[0] : dense[0]), 6);
  if (sparse) {
    out.bits(BigInt(value[0]), 6);
    out.bits(BigInt(digits - 1), 6);
    out.bits(BigInt(gaps.length), digits);
    gaps.forEach((each, i) => {
      out.rice(each, at[0]);
      out.rice(others[i], value[0]);
    });
  } else {
    all.forEach((each) => out.rice(each, dense[0]));
  }
  return out.take();
}

function packed(values, width) {
  const out = new BitWriter();
  values.forEach((value) => out.bits(value, width));
  return out.take();
}

// The protocols: what a list of words becomes. `numbers` are those of the reports.
const PROTOCOLS = {
  /** One entry of a Hadamard matrix, at a public random row, through randomised response. */
  HadamardResponse(epsilon, universe) {
    const law = bernoulliLaw(keepUnits(2, epsilon));
    const order = BigInt(universe.wordBits);
    const parity = (x) => BigInt(x.toString(2).replaceAll("0", "").length & 1);
    return {
      family: 1,
      cells: 1,
      encode(key, items, numbers, words) {
        const bits = items.map((item, i) => parity((philox(key, numbers[i])[0] >> (64n - order)) & item));
        const kept = law.draw(words, items.length);
        return packed(bits.map((bit, i) => bit ^ (1n - kept[i])), 1);
      },
    };
  },

  /** The bucket of the item under the report's own public function, through randomised response over g buckets. */
  LocalHashing(epsilon, universe, parameters, real) {
    const best = Math.exp(real) + 1;
    const near = [...new Set([Math.floor(best), Math.ceil(best)].map((g) => Math.min(Math.max(2, g), 65536)))].sort((a, b) => a - b);
    // The variance of a report about another item than its own, compared as the rational numbers they are.
    const rate = (g) => {
      const gap = keepUnits(g, epsilon) * BigInt(g) - ONE64;
      return [BigInt(g - 1) * ONE64 * ONE64, gap * gap];
    };
    const g = near.reduce((a, b) => {
      const [x, y] = [rate(a), rate(b)];
      return y[0] * x[1] < x[0] * y[1] ? b : a;
    });
    const law = bernoulliLaw(keepUnits(g, epsilon));
    const width = bitLength(BigInt(g - 1));
    return {
      family: 2,
      cells: 1,
      encode(key, items, numbers, words) {
        const own = items.map((item, i) => bucketOf(hash(key, numbers[i], item), g));
        const kept = law.draw(words, items.length);
        const others = items.map(() => 1n + words.below(BigInt(g - 1)));
        return packed(own.map((bucket, i) => (bucket + (kept[i] ? 0n : others[i])) % BigInt(g)), width);
      },
    };
  },

  /** One row of a count sketch: +-1 in the item's cell, and discrete Laplace noise of scale 2/epsilon in all of them. */
  LocalSketch(epsilon, universe, { columns }) {
    if (!Number.isInteger(columns) || columns < 1 || columns > 2 ** 20) refuse("columns must be from 1 to 2**20");
    const scale = [2n * epsilon[1], epsilon[0]];
    const law = laplaceLaw(scale);
    const bound = 1n + ceilDiv(451n * scale[0], 10n * scale[1]);
    if (bound >= 1n << 31n) refuse("epsilon is too small for cells of 32 bits");
    const cut = (value) => (value > bound ? bound : value < -bound ? -bound : value);
    return {
      family: 3,
      cells: columns,
      encode(key, items, numbers, words) {
        const cells = new Array(items.length * columns).fill(0n);
        items.forEach((item, i) => {
          const place = Number(bucketOf(hash(key, numbers[i], item), 2 * columns));
          cells[i * columns + (place >> 1)] += place & 1 ? -1n : 1n;
        });
        const noise = law.draw(words, cells.length);
        return writeIntegers(cells.map((cell, i) => cut(cell + noise[i])));
      },
    };
  },
};

// ---- a round ---------------------------------------------------------------------------------------------------------------

/** JSON as Python's json.dumps writes it with sorted keys. Doubles are marked by `Real`: 1 is written 1.0 then. */
class Real {
  constructor(value) {
    this.value = value;
  }
  toString() {
    const [digits, power] = this.value.toExponential().split("e");
    const exponent = Number(power);
    if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
    const plain = String(this.value);
    return plain.includes(".") ? plain : `${plain}.0`;
  }
}

const ESCAPES = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

function pythonJson(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (value instanceof Real || typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (typeof value === "string")
    return `"${value.replace(/["\\]|[^ -~]/g, (c) => ESCAPES[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${pythonJson(key)}: ${pythonJson(value[key])}`).join(", ")}}`;
}

/** The public parameters of one round, and the messages that tell about an item under them. */
export class Round {
  #protocol;
  #universe;
  #key;
  #head;

  /** From the JSON of `protocol.to_dict()`, as text or parsed. */
  static async from(description) {
    return new Round(typeof description === "string" ? JSON.parse(description) : description);
  }

  constructor({ protocol, round_id: roundId, epsilon, universe, parameters = {} }) {
    const made = Object.hasOwn(PROTOCOLS, protocol) ? PROTOCOLS[protocol] : refuse(`this client knows ${Object.keys(PROTOCOLS).join(", ")}`);
    if (typeof roundId !== "string" || !roundId || !wellFormed(roundId) || utf8.encode(roundId).length > 1024)
      refuse("round_id must be a text of 1 to 1024 bytes");
    if (typeof epsilon !== "number" || !(epsilon > 0) || !Number.isFinite(epsilon)) refuse("epsilon must be a positive number");
    this.protocol = protocol;
    this.roundId = roundId;
    this.epsilon = epsilon;
    this.shuffled = parameters.shuffled ?? null;
    this.#universe = new Universe(universe);
    this.#protocol = made(fraction(epsilon), this.#universe, parameters, epsilon);
    const described = pythonJson([protocol, { epsilon: new Real(epsilon), parameters, universe }]);
    const name = utf8.encode(roundId);
    const seed = blake2b(joined([littleEndian(BigInt(this.#protocol.family), 8), name]), 16, "public seed");
    this.#key = [fromLittleEndian(seed.subarray(0, 8)), fromLittleEndian(seed.subarray(8))];
    this.#head = [blake2b(name, 8, "round"), blake2b(utf8.encode(described), 8, "parameters")];
  }

  /** Whoever sees a report can be at most this many times as sure of an item as before. */
  get odds() {
    return Math.exp(this.epsilon);
  }

  /**
   * The message that tells about an item, or about several, epsilon-DP for each of them.
   *
   * `number` is the party's public number, which nobody else has in this round; a random one if it is left out. A second
   * message about the same answer would spend epsilon again: keep the first one, and send that again.
   * `words` are recorded random words, for tests: the message then says that it is not private.
   */
  encode(item, number, { words: recorded } = {}) {
    const items = (Array.isArray(item) ? item : [item]).map((each) => this.#universe.word(each));
    if (!items.length || items.length * this.#protocol.cells > MOST_CELLS) refuse("a message has at least one report, and not too many");
    if (this.shuffled !== null && (number !== undefined || items.length > 1))
      refuse("a message of a shuffled round is one report, with a random number, so that it tells nothing of its sender");
    const source = new Words(recorded);
    const start = number === undefined ? crypto.getRandomValues(new BigUint64Array(1))[0] >> 2n : whole(number, "number");
    if (start < 0n || start + BigInt(items.length) - 1n > MOST_NUMBER) refuse("the numbers of the reports must be from 0 to 2**63 - 1");
    const numbers = items.map((_, i) => start + BigInt(i));
    const reports = this.#protocol.encode(this.#key, items, numbers, source);
    const version = 1 | (source.seeded ? 0x80 : 0);
    const head = [utf8.encode("dm"), Uint8Array.of(version, this.#protocol.family), ...this.#head];
    const body = joined([...head, varint(start), varint(BigInt(items.length)), varint(0n), reports]);
    return joined([body, littleEndian(BigInt(crc32(body)), 4)]);
  }
}
