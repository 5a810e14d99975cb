// Tells the service the browser's time zone, for the times of the next pages.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`hubcloud_zone=${zone}`)) {
  document.cookie = `hubcloud_zone=${zone}; path=/; max-age=31536000; samesite=lax`;
}
