// Draws the plots, and filters the failures. Everything it needs is in the page.
const specs = JSON.parse(document.getElementById("charts").textContent);
const options = {
  renderer: "svg",
  mode: "vega-lite",
  actions: { export: true, source: false, compiled: false, editor: false },
};

for (const place of document.querySelectorAll(".chart[data-chart]")) {
  const key = place.dataset.chart;
  window.vegaEmbed(place, specs[key], { ...options, downloadFileName: `radgen-${key}` }).catch((error) => {
    place.classList.add("failed");
    place.textContent = "This plot could not be drawn; its numbers are in the tables.";
    console.error(`plot ${key}:`, error);
  });
}

const cards = document.getElementById("cards");
if (cards) {
  const all = [...cards.children];
  const text = new Map(all.map((card) => [card, card.textContent.toLowerCase().replace(/\s+/g, " ")]));
  const chips = [...document.querySelectorAll(".chips button")];
  const byModel = document.getElementById("by-model");
  const byText = document.getElementById("by-text");
  const count = document.querySelector(".count");
  const more = document.querySelector(".more");
  const atOnce = Number(cards.dataset.atOnce);
  let axis = "";
  let limit = atOnce;

  const gap = (card, model) =>
    model === ""
      ? Math.max(...Object.entries(card.dataset).filter(([key]) => key.startsWith("gap-")).map(([, value]) => Number(value)))
      : Number(card.dataset[`gap-${model}`] ?? NaN);

  function show() {
    const words = byText.value.toLowerCase().split(/\s+/).filter(Boolean);
    const model = byModel.value;
    const found = all
      .filter((card) => (axis === "" || card.dataset.axis === axis) && !Number.isNaN(gap(card, model)))
      .filter((card) => words.every((word) => text.get(card).includes(word)))
      .sort((a, b) => gap(b, model) - gap(a, model));
    for (const card of all) card.hidden = true;
    for (const card of found.slice(0, limit)) card.hidden = false;
    cards.append(...found);
    const shown = Math.min(limit, found.length);
    count.textContent = found.length === 0
      ? "No triplet fits: choose another axis or model, or shorten the text."
      : `${found.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} triplets, ${shown.toLocaleString("en")} shown`;
    more.hidden = shown >= found.length;
  }

  function anew() {
    limit = atOnce;
    show();
  }

  for (const chip of chips) {
    chip.addEventListener("click", () => {
      axis = chip.dataset.axis;
      for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
      anew();
    });
  }
  byModel.addEventListener("change", anew);
  byText.addEventListener("input", anew);
  more.addEventListener("click", () => {
    limit += atOnce;
    show();
  });
  anew();
}
