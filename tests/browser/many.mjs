// many.mjs DESCRIPTION COUNT MOST: messages about COUNT answers to standard output, each behind its length in two bytes.
// The answer of party i is item floor(MOST (i/COUNT)^3), so that they are not equally frequent.
import { Round } from "../../clients/js/discreet.js";

const [description, count, most] = process.argv.slice(2);
const round = await Round.from(description);
const chunks = [];
for (let i = 0; i < Number(count); i++) {
  const part = i / Number(count);
  const message = round.encode(Math.floor(part * part * part * Number(most)), round.shuffled === null ? i : undefined);
  chunks.push(Uint8Array.of(message.length & 255, message.length >> 8), message);
}
process.stdout.write(Buffer.concat(chunks));
