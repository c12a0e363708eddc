/** The shortest retention published for `method path` by GET /.well-known/idempotency, in ms; else Infinity. */
export const publishedRetention = (document: any, method: string, path: string): number =>
  Math.min(
    ...[].concat(document.operations ?? []).map((operation: any) =>
      operation?.method === method && matches("" + operation.path, path) ? parseDuration(operation.retention) : Infinity));

/** An ISO 8601 duration of weeks, days, hours, minutes and seconds, in ms; anything else is Infinity. */
export const parseDuration = (text: string): number => {
  const found = /^P(?=.)([\d.]+W)?([\d.]+D)?(T(?=.)([\d.]+H)?([\d.]+M)?([\d.]+S)?)?$/.exec(text);
  return found
    ? [604800, 86400, 0, 3600, 60, 1].reduce((sum, unit, i) => sum + unit * 1000 * (parseFloat(found[i + 1]!) || 0), 0)
    : Infinity;
};

const matches = (template: string, path: string): boolean => {
  const [wanted, found] = [template, path].map((text) => text.split("/").filter(Boolean)) as [string[], string[]];
  return template === "*" ||
    (wanted.length === found.length && wanted.every((part, i) => /^{.*}$/.test(part) || part === found[i]));
};
