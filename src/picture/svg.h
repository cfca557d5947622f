/* The few shapes of SVG that our pictures are made of. Texts may hold anything: they are escaped here, and only here.
 */
#ifndef TB_PICTURE_SVG_H
#define TB_PICTURE_SVG_H

#include <stdio.h>

/* Points; y goes down. */
struct tb_svg_rect {
    double x, y, w, h;
};

enum tb_svg_anchor { TB_SVG_START, TB_SVG_MIDDLE, TB_SVG_END };

/* `style` is CSS that holds for the document. */
void tb_svg_open(FILE *to, double width, double height, const char *title, const char *style);
void tb_svg_close(FILE *to);
/* `name` is a class of the style. */
void tb_svg_box(FILE *to, const char *name, struct tb_svg_rect box, double radius);
void tb_svg_text(FILE *to, const char *name, double x, double y, enum tb_svg_anchor anchor, const char *text);
/* A curve from (x[0],y[0]) to (x[3],y[3]) with the two control points between; `hint` is shown under the mouse. */
void tb_svg_curve(FILE *to, const char *name, const double x[4], const double y[4], const char *hint);
/* Straight from point to point. */
void tb_svg_line(FILE *to, const char *name, const double x[], const double y[], int count, const char *hint);
/* How wide a text of this size will be, roughly. */
double tb_svg_width(const char *text, double size);

#endif
