// The side bar: a person may collapse it, which the next pages remember.

const toggle = document.getElementById("collapse");

toggle?.addEventListener("click", () => {
  const collapsed = document.body.classList.toggle("collapsed");
  toggle.setAttribute("aria-expanded", String(!collapsed));
  document.cookie = `hubcloud_side=${collapsed ? "collapsed" : "full"}; path=/; max-age=31536000; samesite=lax`;
});
