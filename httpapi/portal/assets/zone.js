// Tells the service the browser's time zone, for the times of the next pages. It does so once the page is at rest: to learn the zone takes a slow phone
// longer than everything else that a page does at first. A page that is never at rest tells it after two seconds.
const whenAtRest = window.requestIdleCallback ?? ((tell) => setTimeout(tell, 2000));

whenAtRest(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`hubcloud_zone=${zone}`)) {
    document.cookie = `hubcloud_zone=${zone}; path=/; max-age=31536000; samesite=lax`;
  }
}, { timeout: 2000 });
