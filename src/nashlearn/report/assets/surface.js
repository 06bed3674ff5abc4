// A loss over two score differences: as a map with contours, or as a relief. Drawn on a canvas, pixel by pixel.
Nash.surface = (() => {
  function colour(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const parts = getComputedStyle(probe)
      .color.match(/[\d.]+/g)
      .slice(0, 3)
      .map(Number);
    probe.remove();
    return parts;
  }
  const mix = (a, b, t) => a.map((v, i) => Math.round(v + t * (b[i] - v)));
  const palette = () => ({ low: colour("card"), high: colour("heat"), line: colour("ink"), facet: colour("rival") });
  // Colours grow quickly at first: small losses are where a classifier lives.
  const tint = (colours, t) => mix(colours.low, colours.high, Math.min(1, Math.max(0, t)) ** 0.7);

  // The map: a band of colour between contours `step` apart; `facet(a, b)` numbers the facets, or is null.
  function map(canvas, size, { f, facet, range, step, most }) {
    const ratio = Math.min(2, devicePixelRatio || 1),
      n = Math.round(size * ratio);
    canvas.width = canvas.height = n;
    canvas.style.width = canvas.style.height = `${size}px`;
    const context = canvas.getContext("2d"),
      image = context.createImageData(n, n),
      colours = palette();
    const band = new Int32Array(n * n),
      piece = facet ? new Int16Array(n * n) : null;
    for (let r = 0; r < n; r++) {
      const b = range - (2 * range * (r + 0.5)) / n;
      for (let c = 0; c < n; c++) {
        const a = -range + (2 * range * (c + 0.5)) / n;
        band[r * n + c] = Math.floor(f(a, b) / step + 1e-9);
        if (piece) piece[r * n + c] = facet(a, b);
      }
    }
    const differs = (cells, i, c, r) =>
      (c + 1 < n && cells[i] !== cells[i + 1]) || (r + 1 < n && cells[i] !== cells[i + n]);
    for (let r = 0; r < n; r++) {
      for (let c = 0; c < n; c++) {
        const i = r * n + c;
        let rgb = tint(colours, (band[i] * step) / most);
        if (differs(band, i, c, r)) rgb = mix(rgb, colours.line, 0.38);
        if (piece && differs(piece, i, c, r)) rgb = mix(rgb, colours.facet, 0.85);
        image.data.set([...rgb, 255], 4 * i);
      }
    }
    context.putImageData(image, 0, 0);
  }

  // The relief: a mesh seen from a corner, painted from back to front, with a pin at the cursor.
  function relief(canvas, size, { f, range, step, most, turn, cursor }) {
    const ratio = Math.min(2, devicePixelRatio || 1),
      n = 36,
      colours = palette();
    canvas.width = canvas.height = Math.round(size * ratio);
    canvas.style.width = canvas.style.height = `${size}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const [sin, cos] = [Math.sin(turn), Math.cos(turn)];
    const place = (a, b, z) => {
      const u = (a / range) * cos - (b / range) * sin,
        v = (a / range) * sin + (b / range) * cos;
      return {
        x: size / 2 + u * size * 0.33,
        y: size * 0.7 - v * size * 0.15 - (Math.min(z, most) / most) * size * 0.46,
        depth: v,
      };
    };
    const at = (i) => -range + (2 * range * i) / n;
    const points = Array.from({ length: n + 1 }, (_, i) =>
      Array.from({ length: n + 1 }, (_, j) => {
        const z = f(at(i), at(j));
        return { ...place(at(i), at(j), z), z };
      }),
    );
    const quads = [];
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const corners = [points[i][j], points[i + 1][j], points[i + 1][j + 1], points[i][j + 1]];
        quads.push({
          corners,
          depth: corners.reduce((sum, one) => sum + one.depth, 0),
          z: corners.reduce((sum, one) => sum + one.z, 0) / 4,
        });
      }
    }
    quads.sort((a, b) => b.depth - a.depth);
    context.lineWidth = 0.6;
    context.lineJoin = "round";
    for (const { corners, z } of quads) {
      const rgb = tint(colours, (Math.floor(z / step + 1e-9) * step) / most);
      context.fillStyle = `rgb(${rgb})`;
      context.strokeStyle = `rgb(${mix(rgb, colours.line, 0.4)})`;
      context.beginPath();
      corners.forEach((one, i) => (i ? context.lineTo(one.x, one.y) : context.moveTo(one.x, one.y)));
      context.closePath();
      context.fill();
      context.stroke();
    }
    const foot = place(cursor[0], cursor[1], f(...cursor));
    context.fillStyle = context.strokeStyle = `rgb(${colours.facet})`;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(foot.x, foot.y);
    context.lineTo(foot.x, foot.y - size * 0.07);
    context.stroke();
    context.beginPath();
    context.arc(foot.x, foot.y - size * 0.07, 5, 0, 7);
    context.fill();
  }
  // The colours of the bands up to `most`, with the loss at which each begins.
  function bands(step, most) {
    const colours = palette();
    return Array.from({ length: Math.ceil(most / step + 1e-9) }, (_, i) => {
      return { from: i * step, css: `rgb(${tint(colours, (i * step) / most)})` };
    });
  }
  return { map, relief, bands };
})();
