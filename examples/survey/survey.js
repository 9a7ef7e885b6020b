// A question whose answer is randomised here, before anything leaves the page. Once sent, the same bytes are shown and
// sent again if need be: a second report about the same answer would tell more.

import { Round } from "./discreet.js";

const byId = (id) => document.getElementById(id);
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
const unhex = (text) => Uint8Array.from(text.split(" "), (byte) => parseInt(byte, 16));

const { service, stream } = await (await fetch("survey.json")).json();
const streams = `${service}/v1/streams/${encodeURIComponent(stream)}`;
let asked;
let round;
let made = null; // { answer, bytes }: made once for an answer, whatever is pressed
let unsure = null; // bytes that were sent, and may not have arrived
const unsureKey = () => `${round.roundId} unsure`;

async function begin() {
  const [facts, description] = await Promise.all(
    [streams, `${streams}/round`].map(async (address) => {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(`answered ${answer.status}`);
      return answer.json();
    }),
  );
  asked = facts;
  round = await Round.from(description);
  document.title = facts.question;
  byId("question").textContent = facts.question;
  byId("results-link").href = `${service}/streams/${encodeURIComponent(stream)}`;
  for (const option of facts.options) {
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "answer", value: option });
    const label = document.createElement("label");
    label.append(input, option);
    byId("options").append(label);
  }
  const sure = Math.ceil(100 / (1 + Math.exp(-round.epsilon)));
  byId("truth").textContent =
    "Your browser mixes chance into your answer before it sends anything. Whoever reads what is sent, and that includes us, cannot be sure " +
    `what you chose: of two answers that they thought equally likely for you, they may favour one with ${sure}% at most. Many such ` +
    "answers together still show what people think. It does not hide that you answered, when, and from which address.";
  byId("form").hidden = false;
  const before = localStorage.getItem(round.roundId);
  const maybe = localStorage.getItem(unsureKey());
  if (before) over(unhex(before));
  else if (maybe) again(unhex(maybe));
}

function message() {
  if (unsure) return unsure;
  const answer = new FormData(byId("form")).get("answer");
  if (made?.answer !== answer) made = { answer, bytes: round.encode(answer) };
  return made.bytes;
}

function reveal(bytes) {
  byId("hex").textContent = hex(bytes);
  byId("about-bytes").textContent =
    `${bytes.length} bytes: which round it is, a random number so that it counts once, and the answer with chance mixed in. ` +
    "Nothing else is sent with it but what every request to a web site has.";
  byId("bytes").hidden = false;
  byId("show").setAttribute("aria-expanded", "true");
}

function over(bytes) {
  for (const field of document.querySelectorAll("#form input, #form button")) field.disabled = true;
  reveal(bytes);
  byId("bytes-heading").textContent = "What was sent";
  byId("said").textContent = "Thank you. Your answer was sent once, with chance mixed in.";
  byId("results").hidden = false;
}

// It may have arrived. The number in it makes the same bytes count once; another answer would be another report.
function again(bytes) {
  unsure = bytes;
  reveal(bytes);
  byId("said").textContent = "This did not work. Press again: the same bytes are sent, and they count once.";
  for (const input of document.querySelectorAll("#options input")) input.disabled = !input.checked;
  byId("send").disabled = false;
}

byId("form").addEventListener("change", () => {
  byId("send").disabled = byId("show").disabled = false;
  if (!byId("bytes").hidden) reveal(message());
});
byId("show").addEventListener("click", () => reveal(message()));
byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const bytes = message();
  byId("send").disabled = true;
  try {
    localStorage.setItem(unsureKey(), hex(bytes)); // before it is sent: a reload must not make another
    const answer = await fetch(`${streams}/messages`, {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream" },
      body: bytes,
    });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
  } catch {
    again(bytes);
    return;
  }
  localStorage.setItem(round.roundId, hex(bytes));
  localStorage.removeItem(unsureKey());
  over(bytes);
});

begin().catch(() => {
  byId("said").textContent = asked ? "This question cannot be asked in this browser." : "The survey cannot be reached at the moment.";
});
