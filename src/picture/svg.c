#include "picture/svg.h"

#include "base/base.h"

#include <stdbool.h>

static void escape(FILE *to, const char *text)
{
    for (int bytes; *text != 0; text += bytes > 0 ? bytes : 1) {
        bytes = tb_character_bytes(text);
        if (bytes != 1) { /* others are as they are */
            fprintf(to, "%.*s", bytes > 0 ? bytes : 3, bytes > 0 ? text : TB_CHARACTER_UNKNOWN);
            continue;
        }
        switch (*text) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        default: /* control characters are not allowed in XML at all */
            fputc((unsigned char)*text < ' ' ? ' ' : *text, to);
            break;
        }
    }
}

void tb_svg_open(FILE *to, double width, double height, const char *title, const char *style)
{
    fprintf(to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<title>",
            width, height, width, height);
    escape(to, title);
    fprintf(to, "</title>\n<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", style);
}

void tb_svg_close(FILE *to)
{
    fputs("</svg>\n", to);
}

void tb_svg_box(FILE *to, const char *name, struct tb_svg_rect box, double radius)
{
    fprintf(to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\"/>\n", name, box.x,
            box.y, box.w, box.h, radius);
}

void tb_svg_text(FILE *to, const char *name, double x, double y, enum tb_svg_anchor anchor, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", name, x, y, anchors[anchor]);
    escape(to, text);
    fputs("</text>\n", to);
}

void tb_svg_curve(FILE *to, const char *name, const double x[4], const double y[4], const char *hint)
{
    fprintf(to, "<path class=\"%s\" d=\"M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f\"><title>", name, x[0], y[0], x[1],
            y[1], x[2], y[2], x[3], y[3]);
    escape(to, hint);
    fputs("</title></path>\n", to);
}

void tb_svg_line(FILE *to, const char *name, const double x[], const double y[], int count, const char *hint)
{
    fprintf(to, "<path class=\"%s\" d=\"", name);
    for (int i = 0; i < count; i++)
        fprintf(to, "%s%.1f,%.1f", i == 0 ? "M" : " L", x[i], y[i]);
    fputs("\"><title>", to);
    escape(to, hint);
    fputs("</title></path>\n", to);
}

double tb_svg_width(const char *text, double size)
{
    double width = 0;
    for (; *text != 0; text++) {
        bool inside = ((unsigned char)*text & 0xc0) == 0x80; /* of a character of several bytes */
        width += inside ? 0 : 0.57;
    }
    return width * size;
}
