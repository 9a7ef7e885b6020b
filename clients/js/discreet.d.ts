/** Something that cannot be sent: a wrong description, an item outside the universe. Never says which item. */
export class DiscreetError extends Error {}

/** What a round can be about: texts, whole numbers (a BigInt beyond 53 bits), or bytes. */
export type Item = string | number | bigint | Uint8Array;

/** The public parameters of a round: the JSON of `protocol.to_dict()` in Python. */
export interface Description {
  protocol: "HadamardResponse" | "LocalHashing" | "LocalSketch";
  round_id: string;
  epsilon: number;
  universe: {
    kind: "int64" | "string" | "binary";
    items?: (string | number | bigint)[];
    first?: number | bigint;
    size?: number | bigint;
  };
  parameters?: { columns?: number; shuffled?: number };
}

export interface EncodeOptions {
  /** Recorded random words, for tests: the message then says that it is not private. */
  words?: Iterable<string | number | bigint>;
}

/** The public parameters of one round, and the messages that tell about an item under them. */
export class Round {
  /** From the JSON of `protocol.to_dict()`, as text or parsed. */
  static from(description: string | Description): Promise<Round>;
  constructor(description: Description);
  readonly protocol: Description["protocol"];
  readonly roundId: string;
  readonly epsilon: number;
  /** Whoever sees a report can be at most this many times as sure of an item as before: e^epsilon. */
  readonly odds: number;
  /** Reports of a shuffled round are shown in batches of so many, without their senders; null for other rounds. */
  readonly shuffled: number | null;
  /**
   * The message that tells about an item, or about several, epsilon-DP for each of them.
   *
   * @param item What is told. An array is several items, each a report of its own.
   * @param number The party's public number, which nobody else has in this round; a random one if it is left out.
   */
  encode(item: Item | Item[], number?: number | bigint, options?: EncodeOptions): Uint8Array;
}
