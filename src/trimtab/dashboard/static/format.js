// Numbers, amounts and moments as people read them.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

export const isVertical = (row) => /^(native-)?vpa\//.test(row.id);

export function amount(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "%") return `${plain(value)} %`;
  if (unit === "bytes") return bytes(value);
  if (unit === "cores") return value !== 0 && Math.abs(value) < 1 ? `${plain(value * 1000)}m` : plain(value);
  return plain(value);
}

export function bytes(value) {
  let step = 0;
  while (Math.abs(value) >= 1024 && step < BINARY.length - 1) {
    value /= 1024;
    step += 1;
  }
  return `${plain(value)} ${BINARY[step]}B`.replace(" B", " B");
}

// The binary unit that bytes of this size are read in, and its size.
export function binaryUnit(value) {
  const step = Math.min(Math.max(Math.floor(Math.log2(value || 1) / 10), 0), BINARY.length - 1);
  return { name: `${BINARY[step]}B`, size: 1024 ** step };
}

// Whole steps of the unit that an axis is read in: 2 GiB, 4 GiB and not 2.58.
export function ticksOf(top, unit, most) {
  const base = unit === "bytes" ? binaryUnit(top).size : 1;
  const rough = top / base / Math.max(most, 2);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough) * base;
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step);
}

export function plain(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-GB");
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)) || Number(value.toPrecision(2)));
}

const two = (number) => String(number).padStart(2, "0");

export function clock(seconds, withSeconds = true) {
  const moment = new Date(seconds * 1000);
  const text = `${two(moment.getHours())}:${two(moment.getMinutes())}`;
  return withSeconds ? `${text}:${two(moment.getSeconds())}` : text;
}

export const iso = (seconds) => new Date(seconds * 1000).toISOString();

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// The clock time, with the day in front of it unless that is today.
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock(seconds) : `${date.getDate()} ${MONTHS[date.getMonth()]} ${clock(seconds)}`;
}

// The reader's distance from UTC at a moment: UTC, UTC+1, UTC+5:30.
export function zone(seconds = Date.now() / 1000) {
  const minutes = -new Date(seconds * 1000).getTimezoneOffset();
  const size = Math.abs(minutes);
  const rest = size % 60 ? `:${two(size % 60)}` : "";
  return minutes ? `UTC${minutes > 0 ? "+" : "−"}${Math.floor(size / 60)}${rest}` : "UTC";
}

export function duration(seconds) {
  if (seconds < 120) return `${plain(seconds)} s`;
  return seconds < 7200 ? `${plain(seconds / 60)} min` : `${plain(seconds / 3600)} h`;
}

export const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

export const link = (id) => `#/${id.split("/").map(encodeURIComponent).join("/")}`;
